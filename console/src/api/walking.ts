/** Whole lists from their pages, bounded: a page of the console is no export. */

export const PAGE_SIZE = 100;
export const PAGES_MAX = 20;

export interface ListPage<T> {
  readonly data: readonly T[];
  readonly has_more: boolean;
  readonly last_id: string | null;
}

export interface Walked<T> {
  readonly items: readonly T[];
  /** There is more than anybody would read here. */
  readonly isCut: boolean;
}

/** Follow `after` to the end, or to the last page that is read. */
export async function walkList<T>(
  page: (query: { limit: number; after?: string }) => Promise<ListPage<T>>,
): Promise<Walked<T>> {
  const items: T[] = [];
  let after: string | undefined;
  for (let count = 0; count < PAGES_MAX; count++) {
    const read = await page({ limit: PAGE_SIZE, ...(after === undefined ? {} : { after }) });
    items.push(...read.data);
    if (!read.has_more || read.last_id === null) return { items, isCut: false };
    after = read.last_id;
  }
  return { items, isCut: true };
}

interface ReportPage<T> {
  readonly data: readonly T[];
  readonly next_page: string | null;
}

/** Follow `next_page` to the end of a report's range. */
export async function walkReport<T>(
  page: (query: { page?: string }) => Promise<ReportPage<T>>,
): Promise<T[]> {
  const buckets: T[] = [];
  let next: string | undefined;
  for (let count = 0; count < PAGES_MAX; count++) {
    const read = await page(next === undefined ? {} : { page: next });
    buckets.push(...read.data);
    if (read.next_page === null) return buckets;
    next = read.next_page;
  }
  throw new RangeError("the range is too long for one page");
}
