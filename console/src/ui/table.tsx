/** A table that becomes a list of cards where it would not fit. */

import type { ReactNode } from "react";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  readonly isNumeric?: boolean;
}

interface TableProperties<Row> {
  readonly caption: string;
  readonly columns: ReadonlyArray<Column<Row>>;
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly foot?: ReactNode;
}

/** The first column names the row; one without a title holds what can be done with it. */
export function Table<Row>({ caption, columns, rows, keyOf, foot }: TableProperties<Row>) {
  const [naming, ...others] = columns;
  return (
    <table className="cards">
      <caption className="unseen">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ title, isNumeric }) => (
            <th key={title} scope="col" className={isNumeric ? "right" : ""}>
              {title === "" ? <span className="unseen">Actions</span> : title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            <th scope="row">{naming?.cell(row)}</th>
            {others.map(({ title, cell, isNumeric }) => (
              <td key={title} data-label={title} className={isNumeric ? "right number" : ""}>
                <div>{cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
      {foot !== undefined && <tfoot>{foot}</tfoot>}
    </table>
  );
}
