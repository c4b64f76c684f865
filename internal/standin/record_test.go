package standin

import (
	"io"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
			// The line of the request without an answer is written at once, before
			// those whose answers are still delayed.
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
	t.Parallel()
	assert.True(t, CheckRecord("record.csv", TLS{Cert: "cert.pem"}) != nil, "got no error for a record under TLS")
	assert.OK(t, CheckRecord("record.csv", TLS{}))
	_, err := OpenRecord(filepath.Join(t.TempDir(), "none", "record.csv"))
	assert.True(t, err != nil, "got no error for a missing folder")
}

// A slowConn is a connection whose write returns only once it is closed, long
// after its peer has received the bytes.
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
