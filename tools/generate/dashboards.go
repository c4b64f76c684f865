package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
)

// writeDashboards writes the dashboards: one for what Prometheus scrapes from --metrics-addr, and
// one for what it receives by OTLP. Both come from one list of panels.
func writeDashboards(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range dashboardFiles() {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// dashboardFiles are the dashboards by their file names.
func dashboardFiles() map[string][]byte {
	return map[string][]byte{
		"carronade.json":      encoded(dashboard(&scraped)),
		"carronade-otlp.json": encoded(dashboard(&received)),
	}
}

// encoded is a dashboard as JSON. Queries keep their quotes and comparisons readable.
func encoded(d object) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		panic(err) // an object contains only texts, numbers, booleans, lists and objects
	}
	return b.Bytes()
}
