package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"carronade/internal/report"
	"carronade/internal/secret"
	"carronade/internal/system"
	"carronade/internal/workload"
	"carronade/target"
)

// Limits of attachments, to keep reports small.
const (
	mostAttached    = 64 << 10
	mostAttachments = 32
)

// Attach reads files to attach to a report, and masks secrets: what looks like one, and those
// that the workload refers to. The error is a *target.Error.
func Attach(w *workload.Workload, paths []string) ([]report.Attachment, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	fault := func(path string, err error, hint string) error {
		return &target.Error{Doing: "--attach " + path, Err: err, Hint: hint}
	}
	if len(paths) > mostAttachments {
		return nil, fault(paths[mostAttachments], fmt.Errorf("is file %d, but a report can have at most %d attached", mostAttachments+1, mostAttachments), "attach the files that affect the result")
	}
	mask := maskOf(w)
	var out []report.Attachment
	for _, path := range paths {
		text, err := readText(path)
		switch {
		case errors.Is(err, errTooLarge):
			return nil, fault(path, err, "attach the part that affects the result")
		case errors.Is(err, errNoText):
			return nil, fault(path, err, "attach its source instead")
		case err != nil:
			return nil, fault(path, err, "give a readable file")
		}
		name := filepath.Base(path)
		for n := 2; slices.ContainsFunc(out, func(a report.Attachment) bool { return a.Name == name }); n++ {
			name = fmt.Sprintf("%s (%d)", filepath.Base(path), n)
		}
		out = append(out, report.Attachment{Name: name, Text: mask.Document(text)})
	}
	return out, nil
}

var (
	errTooLarge = fmt.Errorf("is larger than %d KiB, the limit of an attachment", mostAttached>>10)
	errNoText   = errors.New("is not text")
)

// readText reads a small text file or pipe.
func readText(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", system.Reason(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostAttached+1))
	text := string(data)
	switch {
	case err != nil:
		return "", system.Reason(err)
	case len(data) > mostAttached:
		return "", errTooLarge
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", errNoText
	}
	return text, nil
}

// maskOf masks the secrets that a workload refers to.
func maskOf(w *workload.Workload) *secret.Mask {
	mask := new(secret.Mask)
	for _, ref := range w.References() {
		if text, referred, err := secret.Read(ref); err == nil && referred {
			mask.Add(text)
		}
	}
	return mask
}
