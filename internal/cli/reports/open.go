package reports

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/report"
	"carronade/internal/report/export"
	"carronade/internal/store"
	"carronade/protocol"
)

func (c *commands) open() *cobra.Command {
	var only bool
	cmd := &cobra.Command{
		Use: "open [REPORT...]", Short: "open a page with pictures in the browser; several reports are overlaid",
		Long: `Writes reports as one self-contained HTML page to the user's cache folder and
opens it in the browser. The page's path goes to stdout; without a display the
page is only written.`,
		Example: "\n  carronade report open\n  carronade report open last~1 last",
	}
	cmd.Flags().BoolVar(&only, "print", false, "write the page and print its path, but do not open it")
	c.on(cmd, func(ctx context.Context, s store.Store, args []string) error {
		ids, err := chosen(ctx, s, args)
		if err != nil {
			return err
		}
		ds, err := documents(ctx, s, ids)
		if err != nil {
			return err
		}
		path, err := writePage(ds)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(c.Out, path); err != nil || only {
			return err
		}
		if err := browse(ctx, path); err != nil {
			c.Note("could not open it (%v): open it in any browser", err)
		}
		return nil
	})
	return cmd
}

// writePage writes the page of reports and returns its path. The same reports have the same
// page.
func writePage(ds []*report.Document) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	name := ds[0].ID
	if n := len(ds); n > 1 {
		name = fmt.Sprintf("%s-and-%d-to-%s", name, n-1, ds[n-1].ID)
	}
	path := filepath.Join(dir, "carronade", "pages", name+".html")
	err = os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = cmdutil.WriteFile(path, func(w io.Writer) error { return export.Write(w, "html", export.Of(ds...), export.Options{}) })
	}
	if err != nil {
		return "", &protocol.Error{
			Err:  fmt.Errorf("cannot write %s: %s", path, cmdutil.Reason(err)),
			Hint: "carronade report export --as html --out FILE writes it elsewhere",
		}
	}
	return path, nil
}

// browse opens a file with the system's default program, without waiting for it.
func browse(ctx context.Context, path string) error {
	var words []string
	switch runtime.GOOS {
	case "darwin":
		words = []string{"open", path}
	case "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler", path}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return fmt.Errorf("no display was found")
		}
		words = []string{"xdg-open", path}
	}
	exe, err := exec.LookPath(words[0])
	if err != nil {
		return fmt.Errorf("%s is not installed", words[0])
	}
	// The browser outlives this program.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), exe, words[1:]...)
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// documents reads reports for a command that needs all of them at once.
func documents(ctx context.Context, s store.Store, ids []string) ([]*report.Document, error) {
	var ds []*report.Document
	for _, id := range ids {
		d, err := s.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		ds = append(ds, d)
	}
	return ds, nil
}
