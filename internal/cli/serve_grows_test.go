//go:build linux

package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestServerKeepsNothing: 20,000 command lines, over HTTP, as commands and on the text port, leave a
// server with the memory that it had.
func TestServerKeepsNothing(t *testing.T) {
	testkit.OnlyConformance(t, "minutes: 20,000 command lines; TestCheckingKeepsNothing has 100")
	server := exec.Command(carronade(t), "serve", "--text-port", "0", "--http-port", "0")
	server.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	assert.OK(t, err)
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	var text, page string
	lines := bufio.NewScanner(out)
	for page == "" && lines.Scan() {
		if after, ok := strings.CutPrefix(lines.Text(), "listening on "); ok && text == "" {
			text, _, _ = strings.Cut(after, " ")
		}
		if after, ok := strings.CutPrefix(lines.Text(), "page: "); ok {
			page = after
		}
	}
	go io.Copy(io.Discard, out)
	site, token, _ := strings.Cut(page, "/#token=")
	ask := func(path, body string) {
		r := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, site+path, strings.NewReader(body)))(t)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		a := assert.Value(http.DefaultClient.Do(r))(t) //nolint:bodyclose // it is closed below
		io.Copy(io.Discard, a.Body)
		a.Body.Close()
	}
	conn := assert.Value(net.Dial("tcp", text))(t)
	defer conn.Close()
	answers := bufio.NewReader(conn)
	send := func(n int) {
		for k := range n {
			switch {
			case k%40 == 0: // each starts a process
				ask("/api/v1/commands", `{"args": ["version"]}`)
			case k%4 == 0:
				fmt.Fprintf(conn, "nosuch%d --flag\n", k)
				assert.Value(answers.ReadString('\n'))(t)
			default:
				ask("/api/v1/jobs", `{"args": ["nosuch"]}`)
			}
		}
	}
	send(400) // what a server keeps from the start
	before := resident(t, server.Process.Pid)
	send(20_000)
	const most = 20 << 20
	if after := resident(t, server.Process.Pid); after > before+most {
		t.Errorf("%d MiB before, %d MiB after", before>>20, after>>20)
	} else {
		t.Logf("%d KiB before, %d KiB after", before>>10, after>>10)
	}
}
