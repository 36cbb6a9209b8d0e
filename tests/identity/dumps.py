"""What a backup would hold."""

import asyncio


async def dump(url: str) -> str:
    """Everything that PostgreSQL writes into a dump, as text; bytes stand in it in hexadecimal."""
    process = await asyncio.create_subprocess_exec(
        *("pg_dump", "--dbname", url), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()
