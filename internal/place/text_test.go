package place

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"carronade/test/testkit/assert"
)

func TestTextReader(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "a": "a", "\xef\xbb\xbf": "", "\xef\xbb\xbfa\n": "a\n", "\xef\xbb": "\xef\xbb", "\xef\xbb\xbf\xef\xbb\xbfa": "\xef\xbb\xbfa", "ab\xef\xbb\xbf": "ab\xef\xbb\xbf",
	} {
		got, err := io.ReadAll(TextReader(iotest.OneByteReader(strings.NewReader(text))))
		assert.OK(t, err)
		assert.Equal(t, string(got), want, "%q", text)
		assert.Equal(t, string(TextOf([]byte(text))), want, "%q at once", text)
	}
}
