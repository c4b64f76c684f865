package secret

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"carronade/test/testkit/assert"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	assert.OK(t, os.WriteFile(path, []byte("of a file\r\n"), 0o600))
	t.Setenv("TOKEN", "of the environment")
	var unset Unset
	for _, tt := range []struct {
		name, give, want string
		referred         bool
		fails            func(error) bool
	}{
		{"a variable", "env:TOKEN", "of the environment", true, nil},
		{"no such variable", "env:TOKEN_2", "", true, func(err error) bool { return errors.As(err, &unset) && unset == "TOKEN_2" }},
		{"a file", "file:" + path, "of a file", true, nil},
		{"no such file", "file:" + path + "2", "", true, func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		{"not a reference", "hunter2", "hunter2", false, nil},
		{"another word before a colon", "environment:TOKEN", "environment:TOKEN", false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, referred, err := Read(tt.give)
			assert.True(t, got == tt.want && referred == tt.referred, "got %q, %v; want %q, %v", got, referred, tt.want, tt.referred)
			assert.True(t, (err != nil) == (tt.fails != nil) && (tt.fails == nil || tt.fails(err)), "error %v", err)
		})
	}
}
