package sqlite

import (
	"time"

	"carronade/internal/store/sqlitefile"
)

// format is that of a store. Its ID is "Crnd".
var format = sqlitefile.Format{ID: 0x43726e64, Steps: migrations, Patience: 10 * time.Second}

// migrations make version n of the schema, from 1, out of version n-1. A
// released migration is never changed.
var migrations = []string{
	`
CREATE TABLE reports (
  n       INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  hash    TEXT NOT NULL,              -- '' while the run goes on
  head    BLOB NOT NULL,              -- the JSON but for the intervals, zstd
  owner   TEXT NOT NULL DEFAULT '',   -- the process that writes it, JSON; '' when it is finished
  beat    INTEGER NOT NULL DEFAULT 0  -- when the owner was last heard of, s
) STRICT;
CREATE INDEX reports_owner ON reports (owner) WHERE owner <> '';
CREATE TABLE intervals (
  k       INTEGER PRIMARY KEY,        -- n of the report << 24 | a number of its own
  at      REAL NOT NULL,              -- its place among the others
  sum     BLOB NOT NULL,              -- SHA-256 of the JSON
  data    BLOB NOT NULL               -- the JSON, zstd
) STRICT;
CREATE TABLE digests (
  n       INTEGER PRIMARY KEY,        -- of the report
  id      TEXT NOT NULL,
  started INTEGER NOT NULL,           -- ns since the epoch
  version INTEGER NOT NULL,           -- of what makes digests
  row     BLOB NOT NULL               -- store.Row, and a CRC-32C
) STRICT;
CREATE INDEX digests_started ON digests (started);
CREATE INDEX digests_version ON digests (version);
`,
	// From here on a row of intervals may have several of them, in lines. Older programs do not read these.
	`SELECT 1;`,
}

// intervalBits is the number of bits of a key that hold the interval's number.
const intervalBits = 24
