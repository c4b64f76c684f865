package run

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"carronade/internal/host"
	"carronade/internal/place"
	"carronade/internal/report"
	"carronade/internal/secret"
	"carronade/internal/workload"
	"carronade/protocol"
)

// Limits of attachments, to keep reports small.
const (
	mostAttached    = 64 << 10
	mostAttachments = 32
)

// Attach reads files to attach to a report, and masks secrets: what looks like one, and those
// that the workload refers to. See Attachment for the key. The error is a *protocol.Error.
func Attach(w *workload.Workload, paths []string, key []byte) ([]report.Attachment, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	fault := func(path string, err error, hint string) error {
		return &protocol.Error{Doing: "--attach " + path, Err: err, Hint: hint}
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
		out = append(out, Attachment(name, text, mask, key))
	}
	return out, nil
}

// Attachment is a text for a report, with secrets masked, and with the hash of what it was
// before. Without a key it has no hash.
func Attachment(name, text string, mask *secret.Mask, key []byte) report.Attachment {
	a := report.Attachment{Name: name, Text: mask.Text(text)}
	if len(key) > 0 {
		a.Original = hex.EncodeToString(mac(key, "key")[:4]) + ":" + hex.EncodeToString(mac(key, "text", text)[:16])
	}
	return a
}

// mac is the HMAC-SHA-256 of texts.
func mac(key []byte, texts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, text := range texts {
		h.Write([]byte(text + "\x00")) // attached texts have no such character
	}
	return h.Sum(nil)
}

// keyLength is the length of the key of attachments, in bytes.
const keyLength = 32

// AttachmentKey returns the user's key for the hashes of attached files, from a file in the
// folder of the user's own store. The first use creates it, for this user only. Two processes
// at once get the same key. It refuses a key that others can read: with it they could find a short
// secret by its hash.
func AttachmentKey() ([]byte, error) {
	path, err := AttachmentKeyPath()
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createKey(path); err != nil {
			return nil, fmt.Errorf("cannot create %s: %w", path, host.Reason(err))
		}
		info, err = os.Stat(path)
	}
	var key []byte
	if err == nil {
		key, err = os.ReadFile(path)
	}
	switch {
	case err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("other users can read %s: chmod 600 it, or remove it for a new key if they may have read it", path)
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", path, host.Reason(err))
	case len(key) != keyLength:
		return nil, fmt.Errorf("%s is not a key: it has %d bytes instead of %d", path, len(key), keyLength)
	}
	return key, nil
}

// AttachmentKeyPath is the file of that key.
func AttachmentKeyPath() (string, error) {
	dir, err := host.DataDir()
	return filepath.Join(dir, "carronade", "attachments.key"), err
}

// createKey creates a key, unless another process does it now.
func createKey(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	key := make([]byte, keyLength)
	_, _ = rand.Read(key) // it never fails
	return host.MakeFile(path, key)
}

var (
	errTooLarge = fmt.Errorf("is larger than %d KiB, the limit of an attachment", mostAttached>>10)
	errNoText   = errors.New("is not text")
)

// readText reads a small text file or pipe.
func readText(path string) (string, error) {
	f, err := place.Open(path)
	if err != nil {
		return "", host.Reason(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostAttached+1))
	text := string(data)
	switch {
	case err != nil:
		return "", host.Reason(err)
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
