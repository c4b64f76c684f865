//go:build linux

package cli_test

import (
	"bufio"
	"fmt"
	"net"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestServerKeepsNothing: 20,000 command lines, over HTTP, as commands and on the text port, leave a
// server with the memory that it had.
func TestServerKeepsNothing(t *testing.T) {
	testkit.OnlyConformance(t, "minutes: 20,000 command lines; TestCheckingKeepsNothing has 100")
	server := serveFor(t, nil)
	conn := assert.Value(net.Dial("tcp", server.text))(t)
	defer conn.Close()
	answers := bufio.NewReader(conn)
	send := func(n int) {
		for k := range n {
			switch {
			case k%40 == 0: // each starts a process
				server.ask("POST", "commands", `{"args": ["version"]}`)
			case k%4 == 0:
				fmt.Fprintf(conn, "nosuch%d --flag\n", k)
				assert.Value(answers.ReadString('\n'))(t)
			default:
				server.ask("POST", "jobs", `{"args": ["nosuch"]}`)
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
