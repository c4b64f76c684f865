package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"carronade/load"
	"carronade/protocol/protocoltest"
)

// A server takes lines and counts them.
type server struct {
	addr  string
	most  atomic.Int64 // lines taken of a batch; the rest are refused
	delay atomic.Int64 // before each answer
	taken atomic.Int64
}

func serve(t *testing.T, most int) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &server{addr: l.Addr().String()}
	s.most.Store(int64(most))
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.answer(c)
		}
	}()
	return s
}

func (s *server) answer(c net.Conn) {
	defer c.Close()
	n := int64(0)
	for in := bufio.NewScanner(c); in.Scan(); {
		if len(in.Bytes()) > 0 {
			n++
			continue
		}
		n = min(n, s.most.Load())
		s.taken.Add(n)
		if d := s.delay.Load(); d > 0 {
			<-time.After(time.Duration(d))
		}
		fmt.Fprintln(c, n)
		n = 0
	}
}

// Kind passes the suite that every kind must pass.
func TestKind(t *testing.T) {
	s := serve(t, math.MaxInt)
	protocoltest.Run(t, protocoltest.System{
		Kind: Kind{}, URL: "lines://" + s.addr,
		Events: func() uint64 { return uint64(s.taken.Load()) },
		Slow:   func(d time.Duration) { s.delay.Store(int64(d)) },
		Refuse: func(on bool) {
			s.most.Store(math.MaxInt)
			if on {
				s.most.Store(0)
			}
		},
		RefuseWant: load.Rejected,
	})
}

// A protocol in a separate program has all features of the built-in ones: the
// program builds, and its reports add up.
func TestProgramWithItsOwnProtocol(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	exe := filepath.Join(t.TempDir(), "lines")
	// The flags are those of the program itself: nothing is compiled twice.
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, tt := range []struct {
		name          string
		most          int
		args          []string
		acked, failed uint64
	}{
		{"as fast as it goes", 1000, []string{"--count", "20000", "--linger", "1ms"}, 20000, 0},
		{"open loop", 1000, []string{"--rate", "5k/s", "--for", "400ms", "--linger", "1ms"}, 2000, 0},
		{"closed loop", 1000, []string{"--concurrency", "3", "--batch-events", "10", "--count", "3000", "--linger", "1ms"}, 3000, 0},
		{"a server that takes half", 50, []string{"--batch-events", "100", "--count", "10000", "--linger", "1m"}, 5000, 5000}, // half of every batch: all must be full
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, tt.most)
			args := append([]string{"run", "lines://" + s.addr, "--json", "--quiet"}, tt.args...)
			out, err := exec.Command(exe, args...).Output()
			var e *exec.ExitError
			if errors.As(err, &e) && e.ExitCode() != 3 { // 3: this machine is busy, which does not matter here
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
			if n := s.taken.Load(); n != int64(tt.acked) {
				t.Errorf("the server took %d, want %d", n, tt.acked)
			}
		})
	}
}
