package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"

	"carronade/test/testkit/assert"
)

// axeVersion is the version of axe-core, which checks pages for people who use a screen reader or a keyboard.
const axeVersion = "4.14.1"

// Accessible fails the test for each rule of axe-core that the page breaks. The first call on a machine
// fetches axe-core with npm into the user's cache.
func (tab *Tab) Accessible() {
	tab.t.Helper()
	source, err := axe(tab.ctx)
	if err != nil {
		tab.t.Skipf("without axe-core: %v; it needs npm, which scripts/deps all installs", err)
	}
	tab.Do(chromedp.Evaluate[chromedp.Void](source+";globalThis.found=undefined"),
		chromedp.Evaluate[chromedp.Void](`axe.run(document, { resultTypes: ["violations"] }).then((r) => { globalThis.found = r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.html.slice(0, 160) + " - " + n.failureSummary)); }); 0`))
	tab.Until("globalThis.found !== undefined")
	for _, f := range Eval[[]string](tab, "globalThis.found") {
		tab.t.Error(f)
	}
	assert.True(tab.t, Eval[int](tab, "axe.getRules().length") > 50, "axe-core has its rules")
}

// axe returns the source of axe-core.
func axe(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache: %w", err)
	}
	dir := filepath.Join(cache, "carronade")
	path := filepath.Join(dir, "axe-core-"+axeVersion+".js")
	if text, err := os.ReadFile(path); err == nil {
		return string(text), nil
	}
	stage, err := os.MkdirTemp("", "axe-core-*")
	if err != nil {
		return "", fmt.Errorf("make room for axe-core: %w", err)
	}
	defer os.RemoveAll(stage)
	cmd := exec.CommandContext(ctx, "npm", "pack", "axe-core@"+axeVersion, "--silent")
	cmd.Dir = stage
	name, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("fetch axe-core with npm: %w", err)
	}
	packed, err := os.ReadFile(filepath.Join(stage, strings.TrimSpace(string(name))))
	if err != nil {
		return "", fmt.Errorf("read what npm fetched: %w", err)
	}
	text, err := unpack(packed, "package/axe.min.js")
	if err == nil {
		err = errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(path, text, 0o600))
	}
	return string(text), err
}

// unpack returns a file of an archive.
func unpack(packed []byte, name string) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", name, err)
		}
		if h.Name == name {
			return io.ReadAll(r)
		}
	}
}
