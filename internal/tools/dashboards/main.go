// Command dashboards writes the Grafana dashboards of a run's exported metrics: one for
// what Prometheus scrapes from --metrics-addr, and one for what it receives by OTLP. Both
// come from one list of panels. The only argument is the folder.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dir := "packaging/grafana"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := write(dir); err != nil {
		fmt.Fprintln(os.Stderr, "error: writing Grafana dashboards:", err)
		os.Exit(2)
	}
}

func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files() {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// files are the dashboards by their file names.
func files() map[string][]byte {
	return map[string][]byte{
		"carronade.json":      text(dashboard(&scraped)),
		"carronade-otlp.json": text(dashboard(&received)),
	}
}

// text encodes a dashboard. Queries keep their quotes and comparisons readable.
func text(d object) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		panic(err) // an object contains only texts, numbers, booleans, lists and objects
	}
	return b.Bytes()
}
