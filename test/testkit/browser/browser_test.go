//go:build conformance

package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// The problems of a page are found; otherwise every check of a page would pass.
func TestProblemsAreSeen(t *testing.T) {
	b := Start(t)
	for _, c := range []struct{ name, body, want string }{
		{"an exception", `<script>throw new Error("that was it")</script>`, "that was it"},
		{"an error on the console", `<script>console.error("oh", "dear")</script>`, "dear"},
		{"a picture from elsewhere", `<img src="http://127.0.0.1:9/x.png" alt="">`, "127.0.0.1:9/x.png"},
		{"a script against the policy", `<meta http-equiv="Content-Security-Policy" content="script-src 'none'"><script>1</script>`, "Content Security Policy"},
		{"nothing", `<p>fine</p><script>globalThis.x = 1</script>`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "page.html")
			if err := os.WriteFile(path, []byte(`<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>x</title>`+c.body), 0o600); err != nil {
				t.Fatal(err)
			}
			tab := b.Open(t, path, View{})
			got := strings.Join(tab.Problems(), "\n")
			// Asynchronous events may arrive a moment later.
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for range 500 {
				if strings.Contains(got, c.want) {
					break
				}
				<-tick.C
				got = strings.Join(tab.Problems(), "\n")
			}
			assert.True(t, (c.want != "" || got == "") && strings.Contains(got, c.want), "problems: got %q, want one with %q", got, c.want)
		})
	}
}
