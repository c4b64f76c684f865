package bus

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
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nkeys"

	"carronade/internal/host"
)

// agentName is what agents may be called: the name is one element of a subject.
var agentName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,62}$`)

// ValidName reports whether an agent may have this name.
func ValidName(name string) bool { return agentName.MatchString(name) }

// nameOf makes an agent's name of a host's.
func nameOf(host string) string {
	host, _, _ = strings.Cut(host, ".")
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && agentName.MatchString("a"+string(r)) {
			return r
		}
		return '-'
	}, host)
	name = strings.TrimLeft(name, "-_")
	return name[:min(len(name), 63)]
}

// A registry is the agents that a server knows and the tokens with which others can register, in a
// file of its data folder. A change is on the disk before the method that makes it returns. Safe
// for concurrent use by one process.
type registry struct {
	path string
	now  func() time.Time

	mu      sync.Mutex
	content registryFile
}

type registryFile struct {
	Agents []agentEntry `json:"agents"`
	Tokens []tokenEntry `json:"tokens"`
}

type agentEntry struct {
	Name  string    `json:"name"`
	Key   string    `json:"key"`  // public
	Seal  string    `json:"seal"` // public curve key
	Since time.Time `json:"since"`
}

type tokenEntry struct {
	Hash    string    `json:"sha256"` // of the token as the join file has it
	Agent   string    `json:"agent,omitempty"`
	Expires time.Time `json:"expires"`
	Used    bool      `json:"used,omitempty"`
}

// tokenBytes is the length of a token before it is encoded: 128 bits cannot be guessed.
const tokenBytes = 16

// keepTokens is for how long a token is remembered after it expired, so that the error of an agent
// with such a token says why it is refused.
const keepTokens = 24 * time.Hour

// openRegistry reads the registry, which is empty without a file.
func openRegistry(path string, now func() time.Time) (*registry, error) {
	r := &registry{path: path, now: now}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	r.content, err = parseRegistry(text)
	return r, err
}

func parseRegistry(text []byte) (f registryFile, err error) {
	if err := json.Unmarshal(text, &f); err != nil {
		return registryFile{}, err
	}
	names, keys := map[string]bool{}, map[string]bool{}
	for _, a := range f.Agents {
		if !ValidName(a.Name) || !nkeys.IsValidPublicUserKey(a.Key) || !nkeys.IsValidPublicCurveKey(a.Seal) || names[a.Name] || keys[a.Key] {
			return registryFile{}, fmt.Errorf("agent %q has no valid key, or is listed twice", a.Name)
		}
		names[a.Name], keys[a.Key] = true, true
	}
	return f, nil
}

// change applies a change and writes the file; the change is undone if that fails.
func (r *registry) change(f func(*registryFile)) error {
	next := registryFile{slices.Clone(r.content.Agents), slices.Clone(r.content.Tokens)}
	f(&next)
	old := r.now().Add(-keepTokens)
	next.Tokens = slices.DeleteFunc(next.Tokens, func(t tokenEntry) bool { return t.Expires.Before(old) })
	text, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	if err := host.ReplaceFile(r.path, append(text, '\n')); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	r.content = next
	return nil
}

// token makes a token and returns it. Only its hash is stored.
func (r *registry) token(agent string, valid time.Duration) (token string, expires time.Time, err error) {
	if agent != "" && !ValidName(agent) {
		return "", time.Time{}, ErrName
	}
	raw := make([]byte, tokenBytes)
	rand.Read(raw)
	token = base64.RawURLEncoding.EncodeToString(raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	expires = r.now().Add(valid).UTC().Truncate(time.Second)
	return token, expires, r.change(func(f *registryFile) {
		f.Tokens = append(f.Tokens, tokenEntry{Hash: hashOf(token), Agent: agent, Expires: expires})
	})
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// register registers an agent with a token. It returns the agent, and the key that this agent had
// before, if any.
func (r *registry) register(h hello) (a agentEntry, replaced string, err error) {
	if !nkeys.IsValidPublicCurveKey(h.Seal) {
		return agentEntry{}, "", errBroken
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.content.Agents, func(a agentEntry) bool { return a.Key == h.Key }); i >= 0 {
		return r.content.Agents[i], "", nil // by another connection, just now
	}
	// All tokens are compared, each in constant time.
	at, hash := -1, []byte(hashOf(h.Token))
	for i, t := range r.content.Tokens {
		if subtle.ConstantTimeCompare([]byte(t.Hash), hash) == 1 {
			at = i
		}
	}
	if at < 0 {
		return agentEntry{}, "", ErrWrongToken
	}
	t := r.content.Tokens[at]
	if t.Used {
		return agentEntry{}, "", ErrUsedToken
	}
	if now := r.now(); !now.Before(t.Expires) {
		return agentEntry{}, "", detail(ErrExpiredToken, "it was valid until %s, and the server's clock says %s", t.Expires.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if h.Name != "" && t.Agent != "" && h.Name != t.Agent {
		return agentEntry{}, "", detail(ErrWrongName, "%s", t.Agent)
	}
	name := t.Agent
	for _, n := range []string{h.Name, nameOf(h.Host)} {
		if name == "" {
			name = n
		}
	}
	if !ValidName(name) {
		return agentEntry{}, "", ErrName
	}
	taken := slices.IndexFunc(r.content.Agents, func(a agentEntry) bool { return a.Name == name })
	if taken >= 0 {
		if t.Agent == "" {
			return agentEntry{}, "", detail(ErrNameTaken, "%s", name)
		}
		replaced = r.content.Agents[taken].Key
	}
	a = agentEntry{Name: name, Key: h.Key, Seal: h.Seal, Since: r.now().UTC().Truncate(time.Second)}
	err = r.change(func(f *registryFile) {
		f.Tokens[at].Used = true
		if taken >= 0 {
			f.Agents[taken] = a
			return
		}
		f.Agents = append(f.Agents, a)
		slices.SortFunc(f.Agents, func(a, b agentEntry) int { return strings.Compare(a.Name, b.Name) })
	})
	return a, replaced, err
}

// remove removes an agent and returns its key. Tokens for its name are removed too: who revokes an
// agent does not want it back with a join file that is still around.
func (r *registry) remove(name string) (key string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.content.Agents, func(a agentEntry) bool { return a.Name == name })
	if at < 0 {
		return "", detail(ErrNoAgent, "%s", name)
	}
	key = r.content.Agents[at].Key
	return key, r.change(func(f *registryFile) {
		f.Agents = slices.Delete(f.Agents, at, at+1)
		f.Tokens = slices.DeleteFunc(f.Tokens, func(t tokenEntry) bool { return t.Agent == name && !t.Used })
	})
}

// byKey and byName find agents.
func (r *registry) byKey(key string) (agentEntry, bool) {
	return r.find(func(a agentEntry) bool { return a.Key == key })
}

func (r *registry) byName(name string) (agentEntry, bool) {
	return r.find(func(a agentEntry) bool { return a.Name == name })
}

func (r *registry) find(is func(agentEntry) bool) (agentEntry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.content.Agents, is); i >= 0 {
		return r.content.Agents[i], true
	}
	return agentEntry{}, false
}

// agents returns all agents, by name.
func (r *registry) agents() []agentEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.content.Agents)
}
