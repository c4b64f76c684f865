package fleet

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// TestProtocolIsPure: the state machines know neither the engine nor time nor connections. They get
// all that as arguments, so a simulation decides it.
func TestProtocolIsPure(t *testing.T) {
	files := assert.Value(filepath.Glob("protocol*.go"))(t)
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	assert.Must(t, len(files) >= 5, "got the files %q, want those of the protocol", files)
	set := token.NewFileSet()
	for _, name := range files {
		file := assert.Value(parser.ParseFile(set, name, nil, 0))(t)
		for _, problem := range impure(file) {
			t.Errorf("%s: %s", set.Position(problem.at), problem.what)
		}
	}
}

// TestImpure: each rule can fail.
func TestImpure(t *testing.T) {
	const source = `package fleet
import (
	"net/http"
	"time"
	"carronade/load"
)
func f(c chan int, d time.Duration) {
	go f(c, 0)
	c <- 1
	select {}
	<-time.After(d)
	_ = time.Now()
	_ = http.ErrServerClosed
	_ = load.Never
}`
	file := assert.Value(parser.ParseFile(token.NewFileSet(), "protocol.go", source, 0))(t)
	var got []string
	for _, problem := range impure(file) {
		got = append(got, problem.what)
	}
	want := []string{
		"imports net/http", "imports carronade/load", "uses a channel", "starts a goroutine", "uses a channel", "uses a channel", "uses a channel",
		"calls time.After", "calls time.Now",
	}
	assert.True(t, slices.Equal(got, want), "got %q, want %q", got, want)
}

// An impurity is what a state machine must not do.
type impurity struct {
	at   token.Pos
	what string
}

// pure are the packages that a state machine may import: they compute and do nothing else.
var pure = []string{
	"bytes", "cmp", "crypto/sha256", "encoding/json", "errors", "fmt", "io", "maps", "math", "slices", "strconv", "strings",
	"sync/atomic", "time", "unicode",
}

// impure returns what a file does that a state machine must not do.
func impure(file *ast.File) (all []impurity) {
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value) // the parser checked it
		if !slices.Contains(pure, path) {
			all = append(all, impurity{i.Pos(), "imports " + path})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			all = append(all, impurity{n.Pos(), "starts a goroutine"})
		case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
			all = append(all, impurity{n.Pos(), "uses a channel"})
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				all = append(all, impurity{n.Pos(), "uses a channel"})
			}
		case *ast.SelectorExpr:
			of, ok := n.X.(*ast.Ident)
			if ok && of.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}, n.Sel.Name) {
				all = append(all, impurity{n.Pos(), "calls time." + n.Sel.Name})
			}
		}
		return true
	})
	return all
}
