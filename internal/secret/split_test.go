package secret

import (
	"slices"
	"strings"
	"testing"
)

// A command line is split into the same words as in a shell.
func TestSplit(t *testing.T) {
	for _, test := range []struct {
		name, line string
		want       []string
		err        string
	}{
		{"words", "  a b\tc\n", []string{"a", "b", "c"}, ""},
		{"single", `a 'b "c" \n' d`, []string{"a", `b "c" \n`, "d"}, ""},
		{"double", `a "b 'c' \" \\ \$ \n" d`, []string{"a", `b 'c' " \ $ \n`, "d"}, ""},
		{"joined", `a"b c"'d e'\ f`, []string{"ab cd e f"}, ""},
		{"empty words", `'' ""`, []string{"", ""}, ""},
		{"nothing", "", nil, ""},
		{"no expansion", "$HOME *", []string{"$HOME", "*"}, ""},
		{"open single", "'a", nil, "unclosed"},
		{"open double", `"a`, nil, "unclosed"},
		{"last backslash", `a\`, nil, "nothing follows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Split(test.line)
			if !slices.Equal(got, test.want) || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q, %v, want %q, %q", got, err, test.want, test.err)
			}
		})
	}
}
