package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// server takes lines and counts them; of each shot it refuses the lines beyond
// most.
func server(t *testing.T, most int) (addr string, taken *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	taken = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				n := 0
				for in := bufio.NewScanner(c); in.Scan(); {
					if len(in.Bytes()) > 0 {
						n++
						continue
					}
					n = min(n, most)
					taken.Add(int64(n))
					fmt.Fprintln(c, n)
					n = 0
				}
			}()
		}
	}()
	return l.Addr().String(), taken
}

// A protocol from outside has everything that ours have: it is built as a
// program, and its reports add up.
func TestProgramWithAProtocolOfItsOwn(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "lines")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, tt := range []struct {
		name          string
		most          int
		args          []string
		acked, failed uint64
	}{
		{"as fast as it goes", 1000, []string{"--count", "20000"}, 20000, 0},
		{"open loop", 1000, []string{"--rate", "5k/s", "--for", "400ms"}, 2000, 0},
		{"closed loop", 1000, []string{"--callers", "3", "--events-per-shot", "10", "--count", "3000"}, 3000, 0},
		{"a server that takes half", 50, []string{"--events-per-shot", "100", "--count", "10000"}, 5000, 5000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr, taken := server(t, tt.most)
			args := append([]string{"run", "lines://" + addr, "--json", "--quiet", "--linger", "1ms"}, tt.args...)
			out, err := exec.Command(exe, args...).Output()
			if e, ok := err.(*exec.ExitError); ok && e.ExitCode() != 3 { // 3: this machine is busy, which is not the matter here
				t.Fatalf("%v: %v\n%s", args, err, e.Stderr)
			}
			var report struct {
				Totals struct {
					Offered, Sent, Acked, Failed, Unknown uint64
				} `json:"totals"`
			}
			if err := json.Unmarshal(out, &report); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got := report.Totals
			if got.Acked != tt.acked || got.Failed != tt.failed || got.Unknown != 0 {
				t.Errorf("got %+v, want %d acked and %d failed", got, tt.acked, tt.failed)
			}
			if n := taken.Load(); n != int64(tt.acked) {
				t.Errorf("the server took %d, want %d", n, tt.acked)
			}
		})
	}
}
