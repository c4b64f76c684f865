package compat

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
		err := CheckKafkaTopic(tt.name)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.HasPrefix(err.Error(), "Topic name is invalid: ") || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestCheckExpression(t *testing.T) {
	const java, wrong = "RE2", "error parsing"
	for text, want := range map[string]string{"": "", `[,;]\s*`: "", "(?<=b)": java, "(?=b)": java, `(a)\1`: java, "a++": java, "(": wrong, "[": wrong} {
		err := CheckExpression("--include", text)
		if (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), "--include: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), java) != (want == java)) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
