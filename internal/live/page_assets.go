package live

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"sync"

	"carronade/internal/page"
)

//go:embed assets
var files embed.FS

// An asset is a file of the page.
type asset struct {
	kind, tag   string
	plain, gzip []byte
}

// kinds are the media types of files. Those of the machine may be others.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// assets are the files of the page by their paths.
var assets = sync.OnceValue(func() map[string]*asset {
	out := map[string]*asset{}
	add := func(name string, data []byte) {
		sum := sha256.Sum256(data)
		var z bytes.Buffer
		w, _ := gzip.NewWriterLevel(&z, gzip.BestCompression) // the level is valid
		w.Write(data)                                         //nolint:errcheck // a buffer takes everything
		w.Close()
		out[name] = &asset{kind: kinds[path.Ext(name)], tag: `"` + hex.EncodeToString(sum[:8]) + `"`, plain: data, gzip: z.Bytes()}
	}
	_ = fs.WalkDir(files, "assets", func(name string, d fs.DirEntry, err error) error { // embedded files can be read
		if err != nil || d.IsDir() || kinds[path.Ext(name)] == "" {
			return err
		}
		data, err := files.ReadFile(name)
		add(name[len("assets"):], data)
		return err
	})
	for _, name := range page.Scripts {
		add("/"+name, []byte(page.File(name)))
	}
	add("/style.css", []byte(page.Style()))
	var b bytes.Buffer
	markup := out["/index.html"].plain
	if err := page.Parse(string(markup)).Execute(&b, map[string]any{"Band": page.Blank(), "Key": page.BlankKey()}); err != nil {
		panic(err) // the markup is the program's
	}
	add("/index.html", b.Bytes())
	out["/"] = out["/index.html"]
	return out
})

// Assets serves the page. It has no data, so it needs no token.
func Assets() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isRead(r.Method) {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the page can only be read", http.StatusMethodNotAllowed)
			return
		}
		a := assets()[r.URL.Path]
		if a == nil {
			http.NotFound(w, r)
			return
		}
		head := w.Header()
		head.Set("Content-Type", a.kind)
		head.Set("Cache-Control", "no-cache")
		head.Set("ETag", a.tag)
		head.Set("Vary", "Accept-Encoding")
		if r.Header.Get("If-None-Match") == a.tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		data := a.plain
		if acceptsGzip(r) {
			head.Set("Content-Encoding", "gzip")
			data = a.gzip
		}
		_, _ = w.Write(data) // the viewer has gone
	})
}
