package serve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

func TestTokens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	tokens := OpenTokens(dir)
	if all, err := tokens.List(); len(all) != 0 || err != nil {
		t.Fatalf("%v, %v", all, err)
	}
	ann := assert.Value(tokens.Add("ann"))(t)
	bob := assert.Value(tokens.Add("bob"))(t)
	own := tokens.AddOwn("owner")
	assert.True(t, len(ann) >= 22 && ann != bob, "tokens %q and %q", ann, bob)
	other := OpenTokens(dir) // of another process
	for secret, want := range map[string]string{ann: "ann", bob: "bob", own: "", "": "", ann + "x": "", ann[1:]: ""} {
		user, ok := other.User(secret)
		assert.True(t, user == want && ok == (want != ""), "%q is of %q, %v; want %q", secret, user, ok, want)
	}
	user, _ := tokens.User(own)
	assert.True(t, user == "owner", "own token is of %q", user)
	path := filepath.Join(dir, "tokens.json")
	text := assert.Value(os.ReadFile(path))(t)
	for _, secret := range []string{ann, bob, own} {
		assert.True(t, !strings.Contains(string(text), secret), "the file contains a token")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	assert.OK(t, tokens.Remove("ann"))
	_, ok := other.User(ann)
	assert.True(t, !ok, "a token that was removed is valid")
	_, ok = other.User(bob)
	assert.True(t, ok, "the token of another user was removed")
	err := tokens.Remove("ann")
	assert.True(t, errors.Is(err, ErrNoUser), "%v", err)
	for _, bad := range []string{"", "a b", "../x", "-x", strings.Repeat("x", 33), "a\n"} {
		_, err := tokens.Add(bad)
		assert.True(t, errors.Is(err, ErrUserName), "%q: %v", bad, err)
	}
	// With a damaged file no token is valid, and it is not overwritten.
	assert.OK(t, os.WriteFile(path, []byte("[{"), 0o600))
	_, ok = other.User(bob)
	assert.True(t, !ok, "a damaged file lets a user in")
	_, err = tokens.Add("eve")
	assert.ErrorHas(t, err, "damaged")
	user, _ = tokens.User(own)
	assert.True(t, user == "owner", "the server's own token depends on the file")
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
