package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"carronade/internal/layout"
)

// Limits of an Output, so that a store takes the report.
const (
	mostOutput     = 10 << 20 // bytes of text
	mostCompressed = 4 << 20
)

// An Output is the end of what the system under test or its build printed, without secrets.
type Output struct {
	Bytes    int64  `json:"bytes"`
	CutBytes int64  `json:"cut_bytes"` // printed before, and not kept
	Gzip     string `json:"gzip"`      // the text, compressed, in base64
}

// NewOutput makes an Output of a text; nil if nothing was printed. cut is how many
// bytes came before it. If it does not compress well, only its end is kept.
func NewOutput(text string, cut int64) *Output {
	if text == "" && cut == 0 {
		return nil
	}
	return newOutput(text, cut, mostCompressed)
}

func newOutput(text string, cut int64, most int) *Output {
	for {
		small := compressed(text)
		if len(small) <= most {
			return &Output{Bytes: int64(len(text)), CutBytes: cut, Gzip: base64.StdEncoding.EncodeToString(small)}
		}
		// As much as would fit if all of it compressed alike, and a little less: a round
		// for each quarter would take seconds.
		n := max(len(text)-int(float64(len(text))*0.95*float64(most)/float64(len(small))), 1)
		if end := strings.IndexByte(text[n:], '\n'); end >= 0 { // whole lines
			n += end + 1
		}
		cut += int64(n)
		text = text[n:]
	}
}

func compressed(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// Text returns the output.
func (o *Output) Text() (string, error) {
	small, err := base64.StdEncoding.DecodeString(o.Gzip)
	if err != nil {
		return "", fmt.Errorf("read the stored output: %w", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(small))
	if err != nil {
		return "", fmt.Errorf("read the stored output: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, 2*mostOutput+1)) // masking may have made it longer
	switch {
	case err != nil:
		return "", fmt.Errorf("read the stored output: %w", err)
	case len(text) > 2*mostOutput:
		return "", errors.New("read the stored output: it is larger than a report allows")
	}
	return string(text), nil
}

// outputText prints how much of each output is kept, and how to read it.
func (d *Document) outputText(p *layout.Page) {
	d.System.BuildOutput.text(p, "build output", "carronade report log "+d.ID+" --build")
	d.System.Output.text(p, "output", "carronade report log "+d.ID)
}

func (o *Output) text(p *layout.Page, label, command string) {
	if o == nil {
		return
	}
	text := size(uint64(max(o.Bytes, 0))) + " kept"
	if o.CutBytes > 0 {
		text = "the last " + text
	}
	p.Pair("", label, text+": "+command)
}
