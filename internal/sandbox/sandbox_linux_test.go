package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"carronade/test/testkit/assert"
)

// inFolder is the variable with the folder for the part of TestConfine in a process of its own.
const inFolder = "CARRONADE_TEST_SANDBOX"

func TestMain(m *testing.M) {
	if dir := os.Getenv(inFolder); dir == limited {
		os.Exit(tooMuch())
	} else if dir != "" {
		os.Exit(confined(dir))
	}
	os.Exit(m.Run())
}

// limited is the value of inFolder for TestMemory.
const limited = "limited"

// tooMuch writes a larger file and takes more memory than it may.
func tooMuch() int {
	dir := os.Getenv("TMPDIR")
	if err := Confine(Limits{AnyPort: true, Memory: 512 << 20, FileSize: 1 << 20, Write: []string{dir}}); err != nil {
		fmt.Println(err)
		return 1
	}
	for size, ok := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, size), 0o600)
		if (err == nil) != ok || err != nil && !errors.Is(err, syscall.EFBIG) {
			fmt.Println(size, err)
			return 1
		}
	}
	if n := Memory(); n < 1<<20 || n > 512<<20 {
		fmt.Println("it has", n)
		return 1
	}
	kept := [][]byte{make([]byte, 64<<20)} // it may have that
	fmt.Println(len(kept[0]))
	for range 64 { // the kernel may allow one mapping above the limit: Go's are in what it has reserved, and none is then new
		kept = append(kept, make([]byte, 16<<20))
	}
	fmt.Println("it has", len(kept), "pieces")
	return 0
}

// TestMemory: a process with limits cannot write a larger file, and ends when it takes more memory.
func TestMemory(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
	cmd.Env = []string{inFolder + "=" + limited, "TMPDIR=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	// Go's runtime ends it with one of several texts.
	assert.True(t, err != nil && strings.Contains(string(out), "67108864\n"), "%v\n%s", err, out)
}

// TestConfine: a confined process does what its limits allow, and nothing else.
func TestConfine(t *testing.T) {
	if w := Here(); !w.Files || !w.Ports || !w.Signals {
		t.Skipf("this kernel has %+v", w)
	}
	dir := t.TempDir()
	for _, path := range []string{"write/a", "read/a", "other/a"} {
		assert.OK(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o700))
		if err := os.WriteFile(filepath.Join(dir, path), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
	cmd.Env = []string{inFolder + "=" + dir}
	out, err := cmd.CombinedOutput()
	assert.True(t, err == nil, "%v\n%s", err, out)
}

// programs are folders of programs and of what they need.
var programs = []string{"/bin", "/lib", "/lib64", "/usr/bin", "/usr/lib"}

func confined(dir string) (code int) {
	check := func(what string, err error, ok bool) {
		if (err == nil) != ok || err != nil && !errors.Is(err, syscall.EACCES) && !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EXDEV) {
			fmt.Printf("%s: %v\n", what, err)
			code = 1
		}
	}
	listen := func() (net.Listener, uint16) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check("listen", err, true)
		return l, l.Addr().(*net.TCPAddr).AddrPort().Port()
	}
	allowed, port := listen()
	other, _ := listen()
	at := func(path string) string { return filepath.Join(dir, path) }
	if err := Confine(Limits{Write: []string{at("write"), at("missing")}, Read: []string{at("read")}, Run: programs, Ports: []uint16{port}}); err != nil {
		check("confine", err, true)
		return 1
	}
	for _, path := range []string{"write/a", "write/new", "read/a", "other/a", "other/new", "../victim"} {
		folder := strings.Split(path, "/")[0]
		err := os.WriteFile(at(path), []byte("x"), 0o600)
		check("write "+path, err, folder == "write")
		if strings.HasSuffix(path, "/a") {
			_, err = os.ReadFile(at(path))
			check("read "+path, err, slices.Contains([]string{"write", "read"}, folder))
		}
	}
	_, err := os.ReadDir(at("other"))
	check("list", err, false)
	check("hard link", os.Link(at("other/a"), at("write/c")), false)
	check("rename", os.Rename(at("other/a"), at("write/b")), false)
	_, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", os.Getppid()))
	check("the environment of another process", err, false)
	check("a signal to another process", syscall.Kill(os.Getppid(), 0), false)
	check("run what may be read", exec.Command(at("read/a")).Run(), false)       //nolint:gosec,noctx // it fails
	check("run what may be run", exec.Command("/bin/sh", "-c", ":").Run(), true) //nolint:noctx // it ends at once
	for l, ok := range map[net.Listener]bool{allowed: true, other: false} {
		c, err := net.Dial("tcp", l.Addr().String())
		check("connect", err, ok)
		if err == nil {
			c.Close()
		}
	}
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // Landlock does not know its sockets
	_, err = plain.Listen(context.Background(), "tcp", "127.0.0.1:0")
	check("listen", err, false)
	return code
}
