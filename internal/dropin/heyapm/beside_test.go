package heyapm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestHeyDumpBody(t *testing.T) {
	file := filepath.Join(t.TempDir(), "body.json")
	got := runHeyTool(t, false, "dump", file, "1", "2", "3")
	if got.Code != 0 || got.Err != nil || !strings.HasSuffix(got.Out, "kb written to disk\n") || len(got.Workloads) > 0 {
		t.Fatalf("dump: %+v", got)
	}
	data := assert.Value(os.ReadFile(file))(t)
	var body struct {
		Transactions []struct {
			Spans []struct {
				Stacktrace []any `json:"stacktrace"`
			} `json:"spans"`
		} `json:"transactions"`
	}
	if err := json.Unmarshal(data, &body); err != nil || len(body.Transactions) != 1 || len(body.Transactions[0].Spans) != 2 || len(body.Transactions[0].Spans[0].Stacktrace) != 3 {
		t.Errorf("body %+v: %v", body, err)
	}
	for _, args := range [][]string{{file, "1", "2"}, {file, "1", "2", "x"}, {file, "-1", "2", "3"}, {filepath.Join(file, "x"), "1", "2", "3"}} {
		got := runHeyTool(t, false, append([]string{"dump"}, args...)...)
		assert.True(t, got.Code == 1 && got.Err != nil, "dump %v: %+v", args, got)
	}
}

// Indices are deleted only after --yes, and only those of an APM Server.
func TestHeyReset(t *testing.T) {
	deleted := ""
	s := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodDelete:
			deleted += r.URL.Path
			fmt.Fprint(w, `{}`)
		case r.URL.Path == "/_cluster/health":
			fmt.Fprint(w, `{"status":"green"}`)
		case strings.HasSuffix(r.URL.Path, "/_count"):
			fmt.Fprint(w, `{"count":12}`)
		default:
			fmt.Fprint(w, `[{"index":"apm-1"},{"index":"mine"}]`)
		}
	})
	for _, c := range []struct {
		args []string
		err  string
	}{
		{[]string{"elasticsearch", "reset", "--yes"}, "give -apm-es-url URL elasticsearch reset --yes"},
		{[]string{"-apm-es-url", s.URL, "elasticsearch", "use", "local"}, "the only command for elasticsearch here is"},
		{[]string{"-apm-es-url", s.URL, "elasticsearch", "reset"}, "would delete 1 indices apm-* with 12 docs of " + s.URL + ": add --yes"},
		{[]string{"-apm-es-url", "http://ann:pw@127.0.0.1:1", "elasticsearch", "reset", "--yes"}, "must not contain a login"},
		{[]string{"-apm-es-url", "http://127.0.0.1:1", "elasticsearch", "reset", "--yes"}, "connection refused"},
	} {
		got := runHeyTool(t, false, c.args...)
		if got.Code != 1 || got.Err == nil || !strings.Contains(got.Err.Error(), c.err) || strings.Contains(got.Err.Error(), "ann:pw") || deleted != "" {
			t.Errorf("%v: %+v, deleted %q", c.args, got, deleted)
		}
	}
	if got := runHeyTool(t, false, "-apm-es-url", s.URL, "elasticsearch", "reset", "--yes"); got.Code != 0 || got.Out != "deleted 1 indices with 12 docs\n" || deleted != "/apm-1" {
		t.Errorf("reset: %+v, deleted %q", got, deleted)
	}
}
