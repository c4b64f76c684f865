// Package browser runs a headless Chromium for tests of pages: kept off the network, with what
// its pages print on the console and request.
//
// Its invariant: if the check of a tab finds nothing, its page requested only its own file, or
// its own server, and caused no error, warning or violation of its policies.
package browser

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
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

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// Timeouts for a busy machine: of a step in a page, and of a browser.
const (
	stepTimeout    = 2 * time.Minute
	browserTimeout = 8 * time.Minute
)

// browserNames are the possible names of Chromium's program.
var browserNames = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}

// Find returns the path of a Chromium. Without one, it skips the test and says how to
// get it; scripts/deps, which `make test` runs, installs it.
func Find(t testing.TB) string {
	t.Helper()
	testkit.OnlyConformance(t, "Chromium")
	for _, n := range browserNames {
		if path, err := exec.LookPath(n); err == nil {
			return path
		}
	}
	t.Skip("no Chromium here: scripts/deps installs Debian's, or put one called chromium into the PATH")
	return ""
}

// A Browser is a running Chromium. It ends with the test that started it.
type Browser struct{ ctx context.Context }

// Start starts a headless Chromium.
func Start(t testing.TB) *Browser {
	t.Helper()
	path := Find(t)
	ctx, cancel := context.WithTimeout(context.Background(), browserTimeout)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // it does not work as root, as in containers
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true),
		// All network requests must fail.
		chromedp.Flag("proxy-server", "127.0.0.1:9"),
		chromedp.WSURLReadTimeout(stepTimeout),
	)
	ctx, cancelAllocator := chromedp.NewExecAllocator(ctx, options...)
	ctx, cancelBrowser := chromedp.NewContext(ctx)
	t.Cleanup(func() { cancelBrowser(); cancelAllocator(); cancel() })
	assert.OK(t, chromedp.Do(ctx), "start %s", path)
	return &Browser{ctx: ctx}
}

// A View is the screen on which a page is shown.
type View struct {
	Width, Height int64
	Dark          bool
	Touch         bool // a phone
	Print         bool
	NoScript      bool
}

// A Tab is an open page. It is for one goroutine.
type Tab struct {
	t        testing.TB
	ctx      context.Context
	messages *pageMessages
}

type pageMessages struct {
	mu       sync.Mutex
	problems []string
}

// For returns the same tab for a subtest.
func (tab *Tab) For(t testing.TB) *Tab { return &Tab{t: t, ctx: tab.ctx, messages: tab.messages} }

// Open opens a file.
func (b *Browser) Open(t testing.TB, path string, v View) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	tab := &Tab{t: t, ctx: ctx, messages: &pageMessages{}}
	absolute, err := filepath.Abs(path)
	assert.OK(t, err)
	address := (&url.URL{Scheme: "file", Path: filepath.ToSlash(absolute)}).String()
	tab.open(address, v, func(u string) bool { return u == address || strings.HasPrefix(u, address+"#") })
	return tab
}

// OpenServer opens a page of a server on loopback. It may request anything of that
// server.
func (b *Browser) OpenServer(t testing.TB, address string, v View) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	tab := &Tab{t: t, ctx: ctx, messages: &pageMessages{}}
	u, err := url.Parse(address)
	assert.OK(t, err)
	tab.open(address, v, func(of string) bool { return strings.HasPrefix(of, u.Scheme+"://"+u.Host+"/") })
	return tab
}

// open opens an address. own says which requests are the page's own.
func (tab *Tab) open(address string, v View, own func(address string) bool) {
	tab.t.Helper()
	if err := tab.watch(own); err != nil {
		tab.t.Fatal(err)
	}
	steps := append(v.steps(),
		command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: v.NoScript}),
		chromedp.Navigate(address),
	)
	if err := chromedp.Do(tab.ctx, steps...); err != nil {
		tab.t.Fatalf("open %s: %v", address, err)
	}
}

// SetView changes the screen; NoScript is ignored.
func (tab *Tab) SetView(v View) {
	tab.t.Helper()
	tab.Do(v.steps()...)
}

func (v View) steps() []chromedp.Action[chromedp.Void] {
	v.Width = cmp.Or(v.Width, 1280)
	v.Height = cmp.Or(v.Height, 900)
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

// watch records the page's errors, warnings and requests.
func (tab *Tab) watch(own func(address string) bool) error {
	printed := chromedp.Events(tab.ctx, runtime.ConsoleAPICalled)
	thrown := chromedp.Events(tab.ctx, runtime.ExceptionThrown)
	logged := chromedp.Events(tab.ctx, log.EntryAdded)
	requested := chromedp.Events(tab.ctx, network.RequestWillBeSent)
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
		for e, err := range requested {
			if err != nil {
				return
			}
			if u := e.Request.URL; !own(u) && !strings.HasPrefix(u, "data:") {
				tab.problem("the page requested %s", u)
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
	s := tab.messages
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, a...))
}

// Problems are the page's errors, warnings and network requests so far.
func (tab *Tab) Problems() []string {
	// The events of everything before this evaluation arrive before its answer.
	Eval[int](tab, "0")
	s := tab.messages
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.problems...)
}

// Check fails the test for each problem.
func (tab *Tab) Check() {
	tab.t.Helper()
	for _, p := range tab.Problems() {
		tab.t.Error(p)
	}
}

// Do runs steps in the page.
func (tab *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	if err := chromedp.Do(tab.ctx, steps...); err != nil {
		tab.t.Fatal(err)
	}
}

// Eval returns the value of an expression in the page.
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
	if _, err := chromedp.Run(tab.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(stepTimeout))); err != nil {
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

// Keep writes a screenshot, NAME.png, to the folder that PAGE_SCREENSHOTS names, if it names one.
func (tab *Tab) Keep(name string) {
	tab.t.Helper()
	folder := os.Getenv("PAGE_SCREENSHOTS")
	if folder == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), tab.Screenshot(), 0o600); err != nil {
		tab.t.Fatal(err)
	}
}

// command returns a step that sends a command of the browser's protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}
