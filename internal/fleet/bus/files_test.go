package bus

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/test/testkit/assert"
)

func TestJoinFile(t *testing.T) {
	want := Join{Address: "10.0.0.1:8236", Pin: "sha256:" + strings.Repeat("ab", 32), Token: "secret", Agent: "a", Expires: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	path := filepath.Join(t.TempDir(), "join.json")
	must(t, want.Write(path))
	got, err := ReadJoin(path)
	must(t, err)
	assert.Same(t, got, want)
	info, err := os.Stat(path)
	must(t, err)
	assert.True(t, runtime.GOOS == "windows" || info.Mode().Perm() == 0o600, "mode %v, want 0600", info.Mode())
	assert.ErrorHas(t, want.Write(path), "the file exists", "written over")
	err = want.Write(filepath.Join(t.TempDir(), "no", "join.json"))
	assert.True(t, errors.Is(err, os.ErrNotExist), "in a folder that is missing: %v", err)
	good := string(text(want))
	for _, bad := range []string{
		"", "{", "[]", `"x"`, "{}",
		strings.Replace(good, ":8236", "", 1),
		strings.Replace(good, ":8236", ":x", 1),
		strings.Replace(good, ":8236", ":70000", 1),
		strings.Replace(good, "sha256:ab", "sha256:AB", 1),
		strings.Replace(good, "sha256:", "", 1),
		strings.Replace(good, "secret", "", 1),
		strings.Replace(good, "secret", strings.Repeat("x", 300), 1),
		strings.Replace(good, `"a"`, `"a.b"`, 1),
		strings.Replace(good, "2026", "x026", 1),
		strings.Replace(good, `"secret"`, `{"secret":"secret"}`, 1),
		good + "x",
	} {
		must(t, os.WriteFile(path, []byte(bad), 0o600))
		_, err := ReadJoin(path)
		assert.True(t, err != nil, "read %s", bad)
		assert.True(t, !strings.Contains(err.Error(), "secret"), "the error has the token: %v", err)
	}
	_, err = ReadJoin(t.TempDir())
	assert.True(t, err != nil, "read a folder")
	must(t, os.WriteFile(path, bytes.Repeat([]byte(" "), mostFile+1), 0o600))
	_, err = ReadJoin(path)
	assert.True(t, err != nil, "read a file of 64 KiB")
}

func TestNames(t *testing.T) {
	for host, want := range map[string]string{
		"load-1": "load-1", "load-1.example.org": "load-1", "Bü ro": "B--ro", "-x": "x", "": "", "...": "", "_": "",
		strings.Repeat("x", 100): strings.Repeat("x", 63),
	} {
		got := nameOf(host)
		assert.True(t, got == want && (got == "" || ValidName(got)), "%q becomes %q, want %q", host, got, want)
	}
	for _, bad := range []string{"", "a.b", "a b", "*", ">", "-a", "a\n", strings.Repeat("x", 64), "ä", "$SYS"} {
		assert.True(t, !ValidName(bad), "%q is a name", bad)
	}
}

// fails expects that a server does not start, with a hint.
func fails(t *testing.T, cfg ServerConfig, want string) {
	t.Helper()
	s, err := Serve(cfg)
	if err == nil {
		s.Close()
		t.Fatalf("the server started, want %s", want)
	}
	e, ok := errors.AsType[*advice.Error](err)
	assert.True(t, ok && e.Hint != "" && strings.Contains(err.Error(), want), "%T %v, want %s with a hint", err, err, want)
}

func TestServeFails(t *testing.T) {
	t.Parallel()
	b := start(t)
	free := "127.0.0.1:0"
	fails(t, ServerConfig{Listen: b.Addr(), Dir: t.TempDir()}, "address already in use")
	fails(t, ServerConfig{Listen: "127.0.0.1", Dir: t.TempDir()}, "is not HOST:PORT")
	fails(t, ServerConfig{Listen: "127.0.0.1:x", Dir: t.TempDir()}, "no port number")
	fails(t, ServerConfig{Listen: "192.0.2.1:0", Dir: t.TempDir()}, "cannot assign requested address")
	fails(t, ServerConfig{Listen: ":0", Dir: t.TempDir()}, "join files need an address")
	fails(t, ServerConfig{Listen: "[::]:0", Dir: t.TempDir()}, "join files need an address")
	if runtime.GOOS != "windows" {
		fails(t, ServerConfig{Listen: free, Dir: b.cfg.Dir}, "another server uses it")
	}
	if runtime.GOOS == "linux" {
		fails(t, ServerConfig{Listen: free, Dir: "/proc/carronade"}, "no such file or directory") // where no user can write
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	fails(t, ServerConfig{Listen: free, Dir: file}, "not a directory")
	for name, want := range map[string]string{"agents.json": "agents.json", OperatorFile: OperatorFile, certificateFile: "use the data folder"} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("{damaged"), 0o600))
		fails(t, ServerConfig{Listen: free, Dir: dir}, want)
	}
	dir := t.TempDir()
	s, err := Serve(ServerConfig{Listen: free, Dir: dir})
	must(t, err)
	must(t, s.Close())
	must(t, s.Close())
	for _, name := range []string{"agents.json", OperatorFile, certificateFile, "lock"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if name == "agents.json" && errors.Is(err, os.ErrNotExist) {
			continue // there are none
		}
		if must(t, err); runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, want 0600", name, info.Mode())
		}
	}
}

func TestAdvertise(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ listen, advertise, want string }{
		{"127.0.0.1:0", "", "127.0.0.1:PORT"},
		{"localhost:0", "", "localhost:PORT"},
		{"0.0.0.0:0", "127.0.0.1", "127.0.0.1:PORT"},
		{":0", "load.example.org:99", "load.example.org:99"},
		{"127.0.0.1:0", "::1", "[::1]:PORT"},
		{"127.0.0.1:0", "[::1]", "[::1]:PORT"},
	} {
		dir := t.TempDir()
		s, err := Serve(ServerConfig{Listen: tt.listen, Advertise: tt.advertise, Dir: dir})
		must(t, err)
		o, err := ConnectOperator(t.Context(), filepath.Join(dir, OperatorFile))
		must(t, err)
		j, err := o.Token(t.Context(), "", 0)
		must(t, err)
		_, port, err := net.SplitHostPort(s.Addr())
		must(t, err)
		assert.Equal(t, j.Address, strings.Replace(tt.want, "PORT", port, 1), "%+v: the join file", tt)
		o.Close()
		s.Close()
	}
}

func TestOperatorFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := ConnectOperator(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	b := start(t)
	path := filepath.Join(b.cfg.Dir, OperatorFile)
	must(t, b.Close())
	if _, err := ConnectOperator(t.Context(), path); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("no server: %v", err)
	}
	// The operator file of a folder that was set up again.
	old, err := os.ReadFile(path)
	must(t, err)
	must(t, os.Remove(path))
	b.serve()
	must(t, os.WriteFile(path, old, 0o600))
	_, err = ConnectOperator(t.Context(), path)
	e, ok := errors.AsType[*advice.Error](err)
	assert.True(t, ok && errors.Is(err, ErrNoToken) && strings.Contains(e.Hint, "operator file"), "an old operator file: %v", err)
	// And one that was connected gives up.
	select {
	case <-b.operator.Done():
	case <-time.After(longEnough):
		t.Fatal("the operator does not give up")
	}
	assert.True(t, errors.Is(b.operator.Err(), ErrNoToken) && errors.Is(b.operator.Send("a", nil), ErrNoToken),
		"the operator gave up with %v", b.operator.Err())
}

func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	b := newInbox(true)
	defer b.close()
	big := letter{data: make([]byte, MaxMessage)}
	for range mostWaiting / MaxMessage {
		assert.Must(t, b.put(big), "a message is lost too early")
	}
	assert.True(t, !b.put(big), "the first loss is not reported")
	assert.True(t, b.put(big), "the second loss is reported too")
	got := make(chan letter)
	b.receive(func(l letter) { got <- l })
	for range mostWaiting / MaxMessage {
		<-got
	}
	assert.True(t, b.put(letter{data: []byte("next")}) && string((<-got).data) == "next", "nothing comes after a loss")
}

func FuzzJoin(f *testing.F) {
	f.Add([]byte(`{"address":"h:1","pin":"sha256:` + strings.Repeat("0", 64) + `","token":"t","agent":"a","expires":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := parseJoin(data)
		if err != nil {
			return
		}
		again, err := parseJoin(text(j))
		assert.True(t, err == nil && again.Token == j.Token && again.Address == j.Address && again.Expires.Equal(j.Expires), "%+v is written as %+v, %v", j, again, err)
	})
}

func FuzzOperatorFile(f *testing.F) {
	seed, seal, err := newSeeds()
	assert.OK(f, err)
	f.Add(text(operatorFile{Address: "h:1", Pin: "sha256:" + strings.Repeat("0", 64), Seed: seed, Seal: seal}))
	f.Fuzz(func(t *testing.T, data []byte) {
		of, err := parseOperatorFile(data)
		if err == nil {
			assert.Value(of.keys())(t)
		}
	})
}

func FuzzAgentFile(f *testing.F) {
	seed, seal, err := newSeeds()
	assert.OK(f, err)
	f.Add(text(agentFile{Seed: seed, Seal: seal}))
	f.Fuzz(func(t *testing.T, data []byte) { parseAgentFile(data) })
}

func FuzzRegistry(f *testing.F) {
	f.Add([]byte(`{"agents":[{"name":"a","key":"U","seal":"X"}],"tokens":[{"sha256":"0"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) { parseRegistry(data) })
}

// FuzzMessage: what is read as a message was written as one, and keeps the bounds.
func FuzzMessage(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x03\x01ab"))
	f.Add([]byte("\x00\x00\x00\x01\x00"))
	f.Add([]byte("\x00\x00\x00\x02\x05a"))
	f.Add([]byte("\x00\x10\x00\x41\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		agent, message, err := readMessage(r)
		if err != nil {
			return
		}
		assert.True(t, len(message) <= MaxMessage && (agent == "" || ValidName(agent)), "%d bytes for %q", len(message), agent)
		read := data[:len(data)-r.Len()]
		frame := messageFrame(agent, message)
		assert.True(t, bytes.HasSuffix(read, frame) && len(bytes.Trim(read[:len(read)-len(frame)], "\x00")) <= 0, "%q for %q was read of %q", message, agent, read)
	})
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02{}"))
	f.Add([]byte("\xff\xff\xff\xff{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readFrame(bytes.NewReader(data), mostHello)
		if err != nil {
			return
		}
		var back bytes.Buffer
		if must(t, writeFrame(&back, got)); !bytes.HasPrefix(data, back.Bytes()) {
			t.Errorf("%q was read of %q", got, data)
		}
	})
}

// FuzzOpen: no bytes open as a secret unless they were sealed, and none panic.
func FuzzOpen(f *testing.F) {
	seed, seal, err := newSeeds()
	assert.OK(f, err)
	own := assert.Value(keysOf(seed, seal))(f)
	sealed := assert.Value(own.sealFor([]byte("x"), own.publicSeal))(f)
	f.Add(sealed)
	f.Add([]byte(own.publicSeal))
	f.Fuzz(func(t *testing.T, data []byte) {
		secret, err := own.open(data, "")
		assert.True(t, err != nil || string(secret) == "x", "%q opened as %q", data, secret)
	})
}
