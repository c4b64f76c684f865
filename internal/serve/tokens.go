package serve

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"carronade/internal/host"
)

// tokenBytes is the length of a token before it is encoded: 128 bits cannot be guessed.
const tokenBytes = 16

// A Token is what the server knows of a token: whose it is, and a hash of it.
type Token struct {
	User string    `json:"user"`
	Hash string    `json:"sha256"` // of the token as users have it
	Made time.Time `json:"made"`
}

// Tokens are the tokens of a server's users, in a file of its data folder that has hashes only.
// Safe for concurrent use by one process; the file is read again for each check, so that a token
// that was removed is refused at once.
type Tokens struct {
	path string
	mu   sync.Mutex
	own  []Token // of this process, not in the file
}

// OpenTokens returns the tokens in a data folder.
func OpenTokens(folder string) *Tokens { return &Tokens{path: filepath.Join(folder, "tokens.json")} }

// userName is what users may be called: names appear in lists of jobs and in paths.
var userName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,31}$`)

// ValidUser reports whether a user may have this name. It is also the name of a folder.
func ValidUser(name string) bool { return userName.MatchString(name) }

// Errors of tokens.
var (
	ErrUserName = errors.New("a user's name has 1 to 32 letters, digits, '.', '_' or '-', and begins with a letter or digit")
	ErrNoUser   = errors.New("no token of this user")
)

// Add makes a token for a user and returns it. It is shown once and not stored.
func (t *Tokens) Add(user string) (string, error) {
	if !ValidUser(user) {
		return "", ErrUserName
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all, err := t.read()
	if err != nil {
		return "", err
	}
	secret, token := newToken(user)
	return secret, t.write(append(all, token))
}

// AddOwn makes a token that is valid until this process ends.
func (t *Tokens) AddOwn(user string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	secret, token := newToken(user)
	t.own = append(t.own, token)
	return secret
}

func newToken(user string) (string, Token) {
	raw := make([]byte, tokenBytes)
	rand.Read(raw)
	secret := base64.RawURLEncoding.EncodeToString(raw)
	return secret, Token{User: user, Hash: hashOf(secret), Made: time.Now().UTC().Truncate(time.Second)}
}

// Remove removes all tokens of a user.
func (t *Tokens) Remove(user string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, err := t.read()
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(k Token) bool { return k.User == user })
	if len(left) == len(all) {
		return ErrNoUser
	}
	return t.write(left)
}

// List returns the tokens in the file.
func (t *Tokens) List() ([]Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read()
}

// User returns whose token this is. It takes the same time for every token, since it compares
// hashes, all of them, in constant time.
func (t *Tokens) User(secret string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, err := t.read()
	if err != nil {
		all = nil
	}
	user, hash := "", hashOf(secret)
	for _, k := range slices.Concat(t.own, all) {
		if subtle.ConstantTimeCompare([]byte(k.Hash), []byte(hash)) == 1 {
			user = k.User
		}
	}
	return user, user != ""
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func (t *Tokens) read() ([]Token, error) {
	text, err := os.ReadFile(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Token
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", t.path, err)
	}
	return all, nil
}

// write replaces the file in one step, so that a full disk loses no token.
func (t *Tokens) write(all []Token) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return err
	}
	// The administrator adds tokens of a server that runs as another user.
	return host.ReplaceFileAs(t.path, append(text, '\n'))
}

// A limiter slows guesses: after a wrong token an address waits a second before the next one is
// looked at. Safe for concurrent use.
type limiter struct {
	mu   sync.Mutex
	next map[string]time.Time // by address: when the next try is looked at
}

// tryEvery is the time between two tries of an address after a wrong one, and mostTries how many
// addresses are remembered.
const (
	tryEvery  = time.Second
	mostTries = 4096
)

// allowed reports whether a try of an address is looked at now.
func (l *limiter) allowed(address string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !now.Before(l.next[address])
}

// failed records a wrong token.
func (l *limiter) failed(address string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = map[string]time.Time{}
	}
	if len(l.next) >= mostTries {
		for a, at := range l.next {
			if !now.Before(at) {
				delete(l.next, a)
			}
		}
		if len(l.next) >= mostTries { // from very many addresses, which may try again; a token cannot be guessed
			clear(l.next)
		}
	}
	l.next[address] = now.Add(tryEvery)
}
