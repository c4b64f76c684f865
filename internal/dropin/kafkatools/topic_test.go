package kafkatools

import (
	"strings"
	"testing"
)

func TestCheckTopic(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"a.B_c-1", ""},
		{strings.Repeat("t", 249), ""},
		{"", "the empty string is not allowed"},
		{"..", "'..' is not allowed"},
		{"t?acks=0", "'t?acks=0' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
		{"a/b", "'a/b' contains one or more characters"},
		{strings.Repeat("t", 250), "is longer than the max allowed length 249"},
	} {
		err := CheckTopic(tt.name)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.HasPrefix(err.Error(), "Topic name is invalid: ") || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q: %v, want %q", tt.name, err, tt.want)
		}
	}
}
