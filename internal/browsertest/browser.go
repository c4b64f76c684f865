// Package browsertest opens pages in a real headless Chromium, for tests. It
// answers for finding the browser, for keeping it off the network and for what
// the page said on its console and asked of the network, and refuses to know
// what is shown.
//
// Its invariant: a tab that is checked without a finding made no request but
// for its own file, and neither it nor its policies complained.
package browsertest

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	runtime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Bounds of what is done with a browser on a busy machine: a step, and all.
const (
	patience = 2 * time.Minute
	lifetime = 8 * time.Minute
)

// names are what Chromium is called.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}

// Find returns the path of a Chromium. Where there is none the test is skipped
// with how to get one; scripts/deps, which `make test` runs, installs it.
func Find(t testing.TB) string {
	t.Helper()
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			return path
		}
	}
	t.Skip("no Chromium here: scripts/deps installs Debian's, or put one called chromium into the PATH")
	return ""
}

// A Browser is a running Chromium. It ends with the test that started it.
type Browser struct{ ctx context.Context }

// Start starts a Chromium without windows.
func Start(t testing.TB) *Browser {
	t.Helper()
	path := Find(t)
	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // root, as in containers, has none
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true),
		// Whatever is asked of the network has nowhere to go.
		chromedp.Flag("proxy-server", "127.0.0.1:9"),
		chromedp.WSURLReadTimeout(patience),
	)
	ctx, cancelAllocator := chromedp.NewExecAllocator(ctx, options...)
	ctx, cancelBrowser := chromedp.NewContext(ctx)
	t.Cleanup(func() { cancelBrowser(); cancelAllocator(); cancel() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return &Browser{ctx: ctx}
}

// A View is the screen that a page is opened on.
type View struct {
	Width, Height int64
	Dark          bool
	Touch         bool // a phone
	Print         bool
	NoScript      bool
}

// A Tab is a page that was opened. It has one owner.
type Tab struct {
	t    testing.TB
	ctx  context.Context
	said *said
}

type said struct {
	mu       sync.Mutex
	problems []string
}

// For is the same tab for a part of the test.
func (tab *Tab) For(t testing.TB) *Tab { return &Tab{t: t, ctx: tab.ctx, said: tab.said} }

// Open opens a file.
func (b *Browser) Open(t testing.TB, path string, v View) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	tab := &Tab{t: t, ctx: ctx, said: &said{}}
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	address := (&url.URL{Scheme: "file", Path: filepath.ToSlash(absolute)}).String()
	if err := tab.watch(address); err != nil {
		t.Fatal(err)
	}
	steps := append(v.steps(),
		command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: v.NoScript}),
		chromedp.Navigate(address),
	)
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatalf("open %s: %v", address, err)
	}
	return tab
}

// Look changes the screen; script stays as it was.
func (tab *Tab) Look(v View) {
	tab.t.Helper()
	tab.Do(v.steps()...)
}

func (v View) steps() []chromedp.Action[chromedp.Void] {
	if v.Width == 0 {
		v.Width = 1280
	}
	if v.Height == 0 {
		v.Height = 900
	}
	scheme, media := "light", ""
	if v.Dark {
		scheme = "dark"
	}
	if v.Print {
		media = "print"
	}
	var size []chromedp.EmulateViewportOption
	if v.Touch {
		size = append(size, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	return []chromedp.Action[chromedp.Void]{
		chromedp.EmulateViewport(v.Width, v.Height, size...),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		}),
	}
}

// watch keeps what the page complains of and asks for.
func (tab *Tab) watch(address string) error {
	printed := chromedp.Events(tab.ctx, runtime.ConsoleAPICalled)
	thrown := chromedp.Events(tab.ctx, runtime.ExceptionThrown)
	logged := chromedp.Events(tab.ctx, log.EntryAdded)
	asked := chromedp.Events(tab.ctx, network.RequestWillBeSent)
	go func() {
		for e, err := range printed {
			if err != nil {
				return
			}
			if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
				tab.problem("the console says %s: %v", e.Type, arguments(e.Args))
			}
		}
	}()
	go func() {
		for e, err := range thrown {
			if err != nil {
				return
			}
			text := e.ExceptionDetails.Text
			if x := e.ExceptionDetails.Exception; x != nil {
				text += " " + x.Description
			}
			tab.problem("the script threw: %s", text)
		}
	}()
	go func() {
		for e, err := range logged {
			if err != nil {
				return
			}
			if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
				tab.problem("the browser says: %s %s", e.Entry.Text, e.Entry.URL)
			}
		}
	}()
	go func() {
		for e, err := range asked {
			if err != nil {
				return
			}
			if u := e.Request.URL; u != address && !strings.HasPrefix(u, address+"#") && !strings.HasPrefix(u, "data:") {
				tab.problem("the page asked for %s", u)
			}
		}
	}()
	return chromedp.Do(tab.ctx,
		command(network.Enable, network.EnableParams{}),
		command(log.Enable, cdp.Empty{}),
	)
}

func arguments(args []*runtime.RemoteObject) string {
	var parts []string
	for _, a := range args {
		parts = append(parts, fmt.Sprint(string(a.Value), a.Description))
	}
	return strings.Join(parts, " ")
}

func (tab *Tab) problem(format string, a ...any) {
	s := tab.said
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, a...))
}

// Problems are what the page complained of and asked the network for so far.
func (tab *Tab) Problems() []string {
	// What the page did before this answer was told before it.
	Eval[int](tab, "0")
	s := tab.said
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.problems...)
}

// Check fails the test for each of them.
func (tab *Tab) Check() {
	tab.t.Helper()
	for _, p := range tab.Problems() {
		tab.t.Error(p)
	}
}

// Do takes steps in the page.
func (tab *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	if err := chromedp.Do(tab.ctx, steps...); err != nil {
		tab.t.Fatal(err)
	}
}

// Eval returns what an expression is in the page.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	v, err := chromedp.Run(tab.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		tab.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// Until waits until an expression is true.
func (tab *Tab) Until(expression string) {
	tab.t.Helper()
	if _, err := chromedp.Run(tab.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience))); err != nil {
		tab.t.Fatalf("wait until %s: %v", expression, err)
	}
}

// Screenshot returns the whole page as a PNG.
func (tab *Tab) Screenshot() []byte {
	tab.t.Helper()
	b, err := chromedp.Run(tab.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		tab.t.Fatal(err)
	}
	return b
}

// command is a step that sends a command of the browser's protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}
