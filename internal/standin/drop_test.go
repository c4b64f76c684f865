package standin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestDrop(t *testing.T) {
	if !CanDrop() {
		t.Skip("this kernel drops nothing")
	}
	out, in := testkit.Pair(t)
	d := NewDropper(in)
	const rounds, size = 50, 100003
	go func() {
		for i := range rounds {
			_, _ = out.Write(bytes.Repeat([]byte{'x'}, size))
			_, _ = out.Write([]byte{byte(i)})
		}
	}()
	for i := range rounds {
		assert.OK(t, d.Drop(size))
		var b [1]byte
		if _, err := io.ReadFull(in, b[:]); err != nil || b[0] != byte(i) {
			t.Fatalf("after round %d: got %d, %v", i, b[0], err)
		}
	}
	five := []byte("12345")
	n := testing.AllocsPerRun(10, func() { _, _ = out.Write(five); _ = d.Drop(5) })
	assert.True(t, n == 0, "%v allocations, want none", n)
	out.Close()
	err := d.Drop(1)
	assert.True(t, errors.Is(err, io.ErrUnexpectedEOF), "at the end: got %v, want %v", err, io.ErrUnexpectedEOF)
}

func TestNewDropperWhereItCannot(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	assert.True(t, NewDropper(a) == nil, "a pipe's bytes are dropped in the kernel")
}

func TestParseRule(t *testing.T) {
	t.Parallel()
	byName := func(name string) (Rule[int], error) {
		if name == "sleepy" {
			return Rule[int]{}, errors.New("no server sleeps")
		}
		return Rule[int]{Name: strings.ToLower(name), What: len(name)}, nil
	}
	for _, test := range []struct {
		name, in string
		want     Rule[int]
		err      string
	}{
		{"a percentage", "Late@1%", Rule[int]{"late", 4, 0.01}, ""},
		{"a part of one", "late@0.25", Rule[int]{"late", 4, 0.25}, ""},
		{"all", "late@100%", Rule[int]{"late", 4, 1}, ""},
		{"an @ in the name", "user@host@2%", Rule[int]{"user@host", 9, 0.02}, ""},
		{"no share", "late", Rule[int]{}, `error rule "late": want LATE@SHARE`},
		{"no name", "@1%", Rule[int]{}, "want LATE@SHARE"},
		{"an empty share", "late@", Rule[int]{}, `error rule "late@": `},
		{"more than all", "late@101%", Rule[int]{}, "more than the whole"},
		{"no such error", "sleepy@1%", Rule[int]{}, `error rule "sleepy@1%": no server sleeps`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := ParseRule(test.in, "LATE@SHARE", byName)
			if test.err != "" {
				assert.ErrorHas(t, err, test.err)
				return
			}
			assert.OK(t, err)
			assert.Same(t, got, test.want)
			again, err := ParseRule(got.String(), "LATE@SHARE", byName)
			assert.True(t, err == nil && again == got, "got %v, %v from %q, want the same rule", again, err, got)
		})
	}
}

func TestCheckRules(t *testing.T) {
	half, most := []Rule[int]{{"a", 1, 0.5}, {"b", 2, 0.5}}, []Rule[int]{{"c", 3, 0.6}, {"d", 4, 0.6}}
	for _, test := range []struct {
		name  string
		delay time.Duration
		lists [][]Rule[int]
		want  string
	}{
		{"nothing", 0, nil, ""},
		{"a delay", time.Hour, nil, ""},
		{"a negative delay", -time.Millisecond, nil, "a delay of -1ms: want 0 or more"},
		{"100% in sum in each list", 0, [][]Rule[int]{half, half}, ""},
		{"more than 100% in sum", 0, [][]Rule[int]{half, most}, "errors in 120% of the answers: want at most 100% in sum"},
		{"more than 100%", 0, [][]Rule[int]{{{"e", 5, 1.5}}}, "error e in 150% of the answers: want 0% to 100%"},
		{"less than 0%", 0, [][]Rule[int]{{{"e", 5, -0.1}, {"f", 6, 0.2}}}, "error e in -10% of the answers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := CheckRules(test.delay, test.lists...); err != nil {
				got = err.Error()
			}
			assert.True(t, strings.HasPrefix(got, test.want) && (test.want != "" || got == ""), "got %q, want %q", got, test.want)
		})
	}
}

func TestDiceOf(t *testing.T) {
	t.Parallel()
	d := NewRuleDice(1, []Rule[int]{{"never", 1, 0}, {"always", 2, 1}})
	for range 100 {
		got := d.Draw()
		assert.Must(t, got == 1, "got side %d, want 1", got)
	}
	assert.Equal(t, NewRuleDice[int](1, nil).Draw(), -1, "a draw without rules")
}

func TestFlags(t *testing.T) {
	var (
		size  int64
		pause time.Duration
		one   int
		many  []int
	)
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	fs.Var(SizeValue(&size), "size", "")
	fs.Var(DurationValue(&pause), "pause", "")
	fs.Var(&Value[int]{&one, strconv.Atoi, strconv.Itoa, "number"}, "one", "")
	fs.Var(&List[int]{&many, strconv.Atoi, strconv.Itoa, "number"}, "many", "")
	shows := func(want string) {
		t.Helper()
		got := ""
		fs.VisitAll(func(f *pflag.Flag) { got += fmt.Sprintf("%s %s %q, ", f.Name, f.Value.Type(), f.Value) })
		assert.Equal(t, got, want)
	}
	shows(`many number "", one number "", pause duration "", size size "", `)
	assert.OK(t, fs.Parse([]string{"--size", "2KiB", "--pause", "5ms", "--one", "7", "--many", "1", "--many", "2"}))
	assert.True(t, size == 2048 && pause == 5*time.Millisecond && one == 7 && len(many) == 2,
		"got %d, %v, %d and %v", size, pause, one, many)
	shows(`many number "1,2", one number "7", pause duration "5ms", size size "2KiB", `)
	for _, bad := range []string{"--one=x", "--many=x", "--size=x", "--pause=1"} {
		assert.True(t, fs.Parse([]string{bad}) != nil, "%s is accepted, want an error", bad)
	}
	assert.True(t, one == 7 && len(many) == 2 && size == 2048, "a refused flag has changed a value")
}

func TestTLS(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.pem")
	for _, test := range []struct {
		name string
		tls  TLS
		want string
	}{
		{"none", TLS{}, ""},
		{"half", TLS{Cert: none}, "both a certificate and its key"},
		{"an authority alone", TLS{ClientCA: none}, "needs TLS"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.tls.Check()
			assert.True(t, (err == nil) == (test.want == "") && (err == nil || strings.Contains(err.Error(), test.want)),
				"got %v, want %q", err, test.want)
		})
	}
	c, err := (TLS{}).Config()
	assert.True(t, c == nil && err == nil, "got %v, %v; want no TLS", c, err)
	_, err = (TLS{Cert: none, Key: none}).Config()
	assert.True(t, errors.Is(err, os.ErrNotExist), "got %v, want %v", err, os.ErrNotExist)
}

// TestRecord: every request has a line, and their times are in order. The times
// include the delay of answers. A request without an answer has none.
func TestRecord(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		delay time.Duration
	}{{"at once", 0}, {"late", 20 * time.Millisecond}} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "record.csv")
			r := assert.Value(OpenRecord(path))(t)
			before := r.now()
			raw := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
			ln := r.WrapOuter(WithFaults(r.WrapInner(raw), tt.delay, Stall{}, false, time.Now()))
			client := assert.Value(net.Dial("tcp", raw.Addr().String()))(t)
			defer client.Close()
			server := assert.Value(ln.Accept())(t)
			c := RecordedConnOf(server)
			assert.Must(t, c != nil, "the connection is not recorded")
			pass := func(from, to net.Conn, n int) {
				t.Helper()
				assert.Value(from.Write(make([]byte, n)))(t)
				assert.Value(io.ReadFull(to, make([]byte, n)))(t)
			}
			answer := func(n int) { // like a server, it reports the answer before the client has read it
				t.Helper()
				assert.Value(server.Write(make([]byte, n)))(t)
				c.Answered()
			}
			message := RecordedRequest{Kind: "message", Partition: NoRecord, Offset: NoRecord, Events: 7}
			pass(client, server, 100)
			c.Received(message)
			answer(10)
			pass(client, server, 100)
			c.Received(RecordedRequest{Kind: "produce", Topic: "t", Partition: 2, Offset: 5, Events: 3, NoAnswer: true})
			c.Received(RecordedRequest{Kind: "produce", Topic: "t", Partition: 0, Offset: 9, Events: 3})
			c.Received(RecordedRequest{Kind: "fetch", Topic: "t", Partition: 1, Offset: 0, Events: NoRecord})
			answer(10)
			assert.Value(io.ReadFull(client, make([]byte, 20)))(t)
			c.Received(message) // and no answer
			for _, end := range []func() error{server.Close, raw.Close, r.Close} {
				assert.OK(t, end())
			}
			after := r.now() // a write may end after its peer has read the answer

			rows := testkit.CSV(t, path)
			assert.Must(t, len(rows) == 6 && cmp.Diff(RecordColumns, joined(rows[0])) == "", "%q, want a head and 5 rows", rows)
			// The line of the request without an answer is written at once, before those whose answers are still delayed.
			want := map[string]string{
				"0": "message,,,,7", "1": "produce,t,2,5,3", "2": "produce,t,0,9,3", "3": "fetch,t,1,0,", "4": "message,,,,7",
			}
			for _, row := range rows[1:] {
				seq := row[1]
				if got := joined(row[2:7]); got != want[seq]+"\n" || row[0] != client.LocalAddr().String() {
					t.Errorf("row %s: %q of %s, want %q", seq, got, row[0], want[seq])
				}
				arrived, began, ended := number(t, row[7]), number(t, row[8]), number(t, row[9])
				if seq == "1" || seq == "4" {
					assert.True(t, began == NoRecord && ended == NoRecord, "row %s is answered: %q", seq, row)
					continue
				}
				assert.True(t, arrived >= before && began >= arrived+int64(tt.delay) && ended >= began && ended <= after,
					"row %s: arrived at %d, answered from %d to %d; the test ran from %d to %d, with a delay of %v", seq, arrived, began, ended, before, after, tt.delay)
			}
		})
	}
}

func joined(row []string) string {
	s := ""
	for i, f := range row {
		if i > 0 {
			s += ","
		}
		s += f
	}
	return s + "\n"
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	if s == "" {
		return NoRecord
	}
	n := assert.Value(strconv.ParseInt(s, 10, 64))(t)
	return n
}

// TestNone: without a path nothing is wrapped.
func TestNone(t *testing.T) {
	t.Parallel()
	r, err := OpenRecord("")
	assert.Must(t, err == nil && r == nil, "got %v and %v", r, err)
	ln := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer ln.Close()
	assert.True(t, r.WrapInner(ln) == ln && r.WrapOuter(ln) == ln, "the listener is wrapped")
	var c *RecordedConn
	c.Received(RecordedRequest{})
	c.Answered()
	assert.OK(t, r.Close())
}

// TestCheckRecord: what cannot be recorded is refused.
func TestCheckRecord(t *testing.T) {
	assert.True(t, CheckRecord("record.csv", TLS{Cert: "cert.pem"}) != nil, "got no error for a record under TLS")
	assert.OK(t, CheckRecord("record.csv", TLS{}))
	_, err := OpenRecord(filepath.Join(t.TempDir(), "none", "record.csv"))
	assert.True(t, err != nil, "got no error for a missing folder")
}

// A slowConn is a connection whose write returns only once it is closed, long after its peer has received the bytes.
type slowConn struct {
	net.Conn
	written, closed chan struct{}
}

func (c *slowConn) Write(p []byte) (int, error) {
	close(c.written)
	<-c.closed
	return len(p), nil
}

func (c *slowConn) Close() error {
	close(c.closed)
	return nil
}

// TestCloseDuringWrite: if the peer receives an answer before the write returns
// and the connection is closed in between, the record contains the answer.
func TestCloseDuringWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "record.csv")
	r := assert.Value(OpenRecord(path))(t)
	slow := &slowConn{written: make(chan struct{}), closed: make(chan struct{})}
	c := &RecordedConn{Conn: slow, r: r, name: "client"}
	r.conns[c] = struct{}{}
	server := &outerConn{c, c}
	c.Received(RecordedRequest{Kind: "message", Partition: NoRecord, Offset: NoRecord, Events: 1})
	go server.Write([]byte("answer"))
	<-slow.written
	assert.OK(t, server.Close())
	assert.OK(t, r.Close())
	rows := testkit.CSV(t, path)
	assert.True(t, len(rows) == 2 && rows[1][8] != "" && rows[1][9] != "", "%q, want one row with its answer", rows)
}
