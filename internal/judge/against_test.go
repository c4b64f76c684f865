package judge

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// With a baseline the newest revision is compared with exactly its reports: not
// with the history, and whatever the branch.
func TestAgainst(t *testing.T) {
	at := func(days int, rows []store.Row) []store.Row {
		for i := range rows {
			rows[i].At = rows[i].At.Add(time.Duration(days) * 24 * time.Hour)
		}
		return rows
	}
	of := func(revision string, more fields) fields {
		f := fields{"branch": "main", "revision": revision}
		maps.Copy(f, more)
		return f
	}
	release := at(0, runs(1, "rel", 8, 50e3, 0.012, 0.01, of("4.0", nil)))
	between := at(1, runs(2, "mid", 8, 30e3, 0.012, 0.01, of("4.1-dev", nil)))
	slower := at(1, runs(2, "slow", 8, 45e3, 0.012, 0.01, of("4.1-dev", nil)))
	newest := at(2, runs(3, "new", 8, 30e3, 0.012, 0.01, of("4.1", nil)))
	pull := at(3, runs(4, "pr", 8, 50e3, 0.012, 0.01, of("5.0", fields{"branch": "pr"})))
	other := at(0, runs(5, "oth", 8, 50e3, 0.012, 0.01, of("4.0", fields{"for": "60s"})))
	port := at(2, runs(6, "port", 8, 50e3, 0.012, 0.01, of("4.1", fields{"target": "kafka://127.0.0.1:9999/t"})))
	dead := at(2, runs(7, "dead", 8, 50e3, 0.012, 0.01, of("4.1", fields{"stopped": "system ended", "partial": true})))
	all := func(sides ...[]store.Row) (out []store.Row) {
		for _, s := range sides {
			out = append(out, s...)
		}
		return out
	}
	_, err := Verify(release, VerifyOptions{Against: &Baseline{Name: "them", Rows: newest}})
	assert.True(t, errors.Is(err, ErrNoBaseline), "what was measured before the baseline alone is judged: %v", err)
	for _, tt := range []struct {
		name           string
		rows, baseline []store.Row
		same           bool
		verdict        string
		says           string // part of the text
	}{
		{"worse than the release", all(between, newest), release, false, Worse, "baseline      4.0 of 2026-10-01 02:00, 8 reports: rel0"},
		{"as the one before it", all(release, between, newest), between, false, NotWorse, "baseline      4.1-dev"},
		{"the baseline's reports match the filters too", all(release, newest), release, false, Worse, "8 reports: new0"},
		{"another branch", pull, release, false, NotWorse, "branch        pr"},
		{"a baseline of two revisions", newest, all(release, slower), false, Worse, "baseline      2026-10-01 02:00, 16 reports"},
		{"too few", newest, release[:5], false, CannotTell, "too few reports: 5 of the baseline and 8 of the newest; needed: 6 on both sides"},
		{"one workload is missing", all(newest, between), all(between, other), false, CannotTell, "the baseline alone has 8 reports of rate 50k/s, for 60s, acks all on kafka://127.0.0.1:9092"},
		{"another port is another system", all(newest, port), release, false, Worse, "newest        4.1 of 2026-10-03 02:00, 8 reports: new0"},
		{"any port", port, release, true, NotWorse, "8 reports: port0"},
		{"the newest died", dead, release, false, Worse, "died in 8 of 8 runs of the newest revision, and in none of 8 of the baseline"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := Verify(tt.rows, VerifyOptions{SameSystem: tt.same, Against: &Baseline{Name: "them", Rows: tt.baseline}})
			assert.OK(t, err)
			assert.True(t, len(v.Groups) == 1 && v.Verdict == tt.verdict,
				"got %d groups and %q, want 1 and %q", len(v.Groups), v.Verdict, tt.verdict)
			var b bytes.Buffer
			assert.OK(t, v.Text(&b, layout.Style{}))
			if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, strings.Join(strings.Fields(tt.says), " ")) || !strings.HasPrefix(text, gateWords[tt.verdict]+" ") || !strings.Contains(text, " verify against them ") {
				t.Errorf("got\n%s\nwant %q in it", b.String(), tt.says)
			}
			checkPage(t, v.Text)
			checkJSON(t, v)
		})
	}
	for name, rows := range map[string][]store.Row{"only the baseline": release, "another workload": other, "another system": port} {
		v, err := Verify(rows, VerifyOptions{Against: &Baseline{Name: "them", Rows: release}})
		assert.True(t, errors.Is(err, ErrNoBaseline), "%s: got %+v, %v", name, v, err)
	}
}
