package serve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/testkit/assert"
)

func TestTokens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	tokens := OpenTokens(dir)
	if all, err := tokens.List(); len(all) != 0 || err != nil {
		t.Fatalf("%v, %v", all, err)
	}
	ann, err := tokens.Add("ann")
	assert.OK(t, err)
	bob, err := tokens.Add("bob")
	assert.OK(t, err)
	own := tokens.AddOwn("owner")
	assert.True(t, len(ann) >= 22 && ann != bob, "tokens %q and %q", ann, bob)
	other := OpenTokens(dir) // of another process
	for secret, want := range map[string]string{ann: "ann", bob: "bob", own: "", "": "", ann + "x": "", ann[1:]: ""} {
		if user, ok := other.User(secret); user != want || ok != (want != "") {
			t.Errorf("%q is of %q, %v; want %q", secret, user, ok, want)
		}
	}
	if user, _ := tokens.User(own); user != "owner" {
		t.Errorf("own token is of %q", user)
	}
	path := filepath.Join(dir, "tokens.json")
	text, err := os.ReadFile(path)
	assert.OK(t, err)
	for _, secret := range []string{ann, bob, own} {
		assert.True(t, !strings.Contains(string(text), secret), "the file contains a token")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	assert.OK(t, tokens.Remove("ann"))
	if _, ok := other.User(ann); ok {
		t.Error("a token that was removed is valid")
	}
	if _, ok := other.User(bob); !ok {
		t.Error("the token of another user was removed")
	}
	if err := tokens.Remove("ann"); !errors.Is(err, ErrNoUser) {
		t.Error(err)
	}
	for _, bad := range []string{"", "a b", "../x", "-x", strings.Repeat("x", 33), "a\n"} {
		if _, err := tokens.Add(bad); !errors.Is(err, ErrUserName) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	// With a damaged file no token is valid, and it is not overwritten.
	assert.OK(t, os.WriteFile(path, []byte("[{"), 0o600))
	if _, ok := other.User(bob); ok {
		t.Error("a damaged file lets a user in")
	}
	if _, err := tokens.Add("eve"); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
	if user, _ := tokens.User(own); user != "owner" {
		t.Error("the server's own token depends on the file")
	}
}

func TestLimiter(t *testing.T) {
	var l limiter
	now := time.Unix(1000, 0)
	assert.True(t, l.allowed("a", now), "the first try waits")
	l.failed("a", now)
	assert.True(t, !l.allowed("a", now.Add(tryEvery-1)), "a second try within a second")
	assert.True(t, l.allowed("b", now) && l.allowed("a", now.Add(tryEvery)), "others wait, or it waits for too long")
	for i := range 3 * mostTries {
		l.failed(fmt.Sprint(i), now)
	}
	assert.True(t, len(l.next) <= mostTries, "%d addresses are remembered", len(l.next))
}
