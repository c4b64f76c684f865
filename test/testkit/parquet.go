package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// parquetTimeout bounds a reader.
const parquetTimeout = 6 * time.Minute

// A ParquetFile is what a reader found in a file.
type ParquetFile struct {
	Rows    int64
	Columns []string
	// Sums, Least and Most are of the columns of numbers, Nulls of all columns, Values
	// (counts of each value) of the columns of text with few different values.
	Sums   map[string]int64
	Nulls  map[string]int64
	Values map[string]map[string]int64
	Least  map[string]int64
	Most   map[string]int64
}

// parquetScript reads a file with both readers, and prints what each found.
const parquetScript = `
import json, sys
import duckdb, pandas as pd
path = sys.argv[1]

df = pd.read_parquet(path, dtype_backend="pyarrow")
p = {"Rows": len(df), "Columns": list(df.columns), "Sums": {}, "Nulls": {}, "Values": {}, "Least": {}, "Most": {}}
for c in df.columns:
    s = df[c]
    p["Nulls"][c] = int(s.isna().sum())
    if pd.api.types.is_integer_dtype(s.dtype):
        p["Sums"][c] = int(s.sum())
        if s.notna().any():
            p["Least"][c], p["Most"][c] = int(s.min()), int(s.max())
    elif s.nunique() < 20:
        p["Values"][c] = {k: int(v) for k, v in s.value_counts().items()}

d = {"Rows": 0, "Columns": [], "Sums": {}, "Nulls": {}, "Values": {}, "Least": {}, "Most": {}}
con = duckdb.connect()
con.execute("create view t as select * from read_parquet('" + path.replace("'", "''") + "')")
one = lambda q: con.execute(q).fetchall()[0][0]
d["Rows"] = one("select count(*) from t")
for c, kind in con.execute("select column_name, column_type from (describe t)").fetchall():
    d["Columns"].append(c)
    d["Nulls"][c] = one(f'select count(*) - count("{c}") from t')
    if kind == "BIGINT":
        d["Sums"][c] = int(one(f'select coalesce(sum("{c}"), 0) from t'))
        if d["Nulls"][c] < d["Rows"]:
            d["Least"][c], d["Most"][c] = one(f'select min("{c}") from t'), one(f'select max("{c}") from t')
    elif one(f'select count(distinct "{c}") from t') < 20:
        d["Values"][c] = dict(con.execute(f'select "{c}", count(*) from t where "{c}" is not null group by 1').fetchall())
json.dump({"duckdb": d, "pandas": p}, sys.stdout)
`

// ReadParquet reads a file with DuckDB and pandas. If either cannot read it, the test fails.
func ReadParquet(t testing.TB, path string) (duckdb, pandas ParquetFile) {
	t.Helper()
	var got struct {
		DuckDB ParquetFile `json:"duckdb"`
		Pandas ParquetFile `json:"pandas"`
	}
	out := python(t, parquetScript, path)
	assert.OK(t, json.Unmarshal(out, &got), "testkit: , of:\n%s", out)
	return got.DuckDB, got.Pandas
}

// PythonEnv is the environment in which Python finds the packages, for programs that use them.
func PythonEnv(t testing.TB) []string {
	t.Helper()
	l, err := pythonLibrary()
	assert.OK(t, err)
	return append(os.Environ(), "PYTHONPATH="+l.dir, "PYTHONDONTWRITEBYTECODE=1")
}

// python runs a script with the packages and returns its stdout.
func python(t testing.TB, script string, args ...string) []byte {
	t.Helper()
	OnlyConformance(t, "Python, DuckDB and pandas")
	l, err := pythonLibrary()
	assert.OK(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), parquetTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, l.python, append([]string{"-c", script}, args...)...)
	cmd.Env = PythonEnv(t)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("testkit: %v\n%s", err, errs.Bytes())
	}
	return out.Bytes()
}
