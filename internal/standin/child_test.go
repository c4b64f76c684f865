package standin_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	apmstandin "carronade/internal/apm/standin"
	kafkastandin "carronade/internal/kafka/standin"
	riemannstandin "carronade/internal/riemann/standin"
	"carronade/internal/standin"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// parentEnv makes the test's binary a parent that spawns a stand-in, prints its address and waits to be killed.
const parentEnv = "STANDIN_TEST_PARENT"

func TestMain(m *testing.M) {
	standin.Hook(kafkastandin.Kind, riemannstandin.Kind, apmstandin.Kind)
	if os.Getenv(parentEnv) != "" {
		child, err := standin.Spawn(context.Background(), "", "kafka", "--listen", "127.0.0.1:0", "--discard")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(child.Addr())
		select {}
	}
	os.Exit(m.Run())
}

func TestSpawn(t *testing.T) {
	child := assert.Value(standin.Spawn(t.Context(), "", "kafka", "--listen", "127.0.0.1:0", "--discard", "--topic", "t:2"))(t)
	assert.True(t, child.Pid() != os.Getpid(), "the child is this process")
	cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(child.Addr()), kgo.DefaultProduceTopic("t")))(t)
	defer cl.Close()
	ctx := testkit.Minute(t)
	for i := range 100 {
		cl.Produce(ctx, &kgo.Record{Value: fmt.Appendf(nil, "value %d", i)}, nil)
	}
	assert.OK(t, cl.Flush(ctx))
	assert.Equal(t, child.Usage(), 0, "processor time before the end")
	for range 2 { // twice is not an error
		if err := child.Stop(); err != nil {
			t.Fatalf("%v; it said: %s", err, child.Output())
		}
	}
	assert.True(t, runtime.GOOS == "windows" || child.Usage() > 0, "the child used no CPU")
	want := "took 100 events"
	assert.True(t, strings.Contains(child.Output(), want), "got output %q, want it to contain %q", child.Output(), want)
}

func TestSpawnAPM(t *testing.T) {
	t.Setenv("CANARY", "sesame")
	child, err := standin.Spawn(t.Context(), "", "apm", "--listen", "127.0.0.1:0", "--secret-token", "env:CANARY", "--max-event", "100KiB", "--error", "event@100%")
	assert.OK(t, err)
	r := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+child.Addr()+"/intake/v2/events", strings.NewReader(
		`{"metadata":{"service":{"name":"a","agent":{"name":"b","version":"1"}}}}`+"\n"+`{"metricset":{"samples":{"a":{"value":1}},"timestamp":1}}`+"\n")))(t)
	r.Header.Set("Authorization", "Bearer sesame")
	resp := assert.Value(http.DefaultClient.Do(r))(t) //nolint:bodyclose // it is closed below
	resp.Body.Close()
	assert.Equal(t, resp.StatusCode, http.StatusBadRequest)
	if err := child.Stop(); err != nil {
		t.Fatalf("%v; it said: %s", err, child.Output())
	}
	if want := "1 requests"; !strings.Contains(child.Output(), want) || !strings.Contains(child.Output(), "1 invalid") || strings.Contains(child.Output(), "sesame") {
		t.Errorf("got output %q, want it to contain %q", child.Output(), want)
	}
}

// TestSpawnAddresses spawns a stand-in that listens on several addresses.
func TestSpawnAddresses(t *testing.T) {
	child := assert.Value(standin.Spawn(t.Context(), "", "riemann", "--listen", "127.0.0.1:0", "--udp", "127.0.0.1:0", "--ws", "127.0.0.1:0", "--discard"))(t)
	for _, addr := range []string{child.Addr(), child.AddrOf("ws")} {
		nc := assert.Value(net.Dial("tcp", addr))(t)
		defer nc.Close()
	}
	assert.True(t, child.AddrOf("udp") != "" && child.AddrOf("tls") == "", "got %q for udp and %q for tls, want one and none", child.AddrOf("udp"), child.AddrOf("tls"))
	if err := child.Stop(); err != nil {
		t.Fatalf("%v; it said: %s", err, child.Output())
	}
	want := "took 0 messages (0 bytes), 0 queries"
	assert.True(t, strings.Contains(child.Output(), want), "got output %q, want it to contain %q", child.Output(), want)
}

func TestSpawnFails(t *testing.T) {
	taken := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	for _, test := range []struct {
		name, exe string
		args      []string
		want      string
	}{
		{"no such program", "/nowhere/carronade", []string{"kafka"}, "no such file"},
		{"no such stand-in", "", []string{"pigeon"}, "no such stand-in"},
		{"no such flag", "", []string{"kafka", "--wings"}, "unknown flag: --wings"},
		{"bad value", "", []string{"kafka", "--stall", "often"}, "want EVERY/LENGTH"},
		{"address taken", "", []string{"kafka", "--listen", taken.Addr().String()}, "address already in use"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := standin.Spawn(t.Context(), test.exe, test.args...)
			assert.ErrorHas(t, err, test.want)
		})
	}
}

func TestSpawnEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	child := assert.Value(standin.Spawn(ctx, "", "kafka", "--listen", "127.0.0.1:0", "--in-memory"))(t)
	cancel()
	<-child.Ended()
	assert.OK(t, child.Stop())
}

func TestChildKilled(t *testing.T) {
	child := assert.Value(standin.Spawn(t.Context(), "", "kafka", "--listen", "127.0.0.1:0", "--discard"))(t)
	assert.OK(t, assert.Value(os.FindProcess(child.Pid()))(t).Kill())
	<-child.Ended()
	assert.True(t, child.Stop() != nil, "got no error from stopping a child that had ended, want one")
}

// TestParentKilled kills a parent with SIGKILL: its stand-in ends too.
func TestParentKilled(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"=1")
	parent.Stderr = os.Stderr
	out := assert.Value(parent.StdoutPipe())(t)
	assert.OK(t, parent.Start())
	defer func() { _ = parent.Wait() }()
	addr := assert.Value(bufio.NewReader(out).ReadString('\n'))(t)
	nc := assert.Value(net.Dial("tcp", strings.TrimSpace(addr)))(t)
	defer nc.Close()
	assert.OK(t, parent.Process.Kill())
	assert.OK(t, nc.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := nc.Read(make([]byte, 1))
	assert.True(t, err != nil && !errors.Is(err, os.ErrDeadlineExceeded), "got %v, want the stand-in's end to close the connection", err)
}

// TestStandalone runs the stand-in, ends it by TERM, and checks all that it prints.
func TestStandalone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no TERM")
	}
	cmd := exec.Command(os.Args[0], "standin", "kafka", "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "CARRONADE_STANDIN_CHILD=1")
	stdin := assert.Value(cmd.StdinPipe())(t)
	defer stdin.Close()
	out := assert.Value(cmd.StdoutPipe())(t)
	assert.OK(t, cmd.Start())
	lines := bufio.NewReader(out)
	first := assert.Value(lines.ReadString('\n'))(t)
	assert.True(t, strings.HasPrefix(first, "listening on 127.0.0.1:") && !strings.HasSuffix(first, ":0\n"),
		"got %q, want the address", first)
	assert.OK(t, cmd.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(lines)
	assert.True(t, err == nil && len(rest) == 0, "got %q, %v after the address, want nothing", rest, err)
	assert.OK(t, cmd.Wait(), "its end")
}
