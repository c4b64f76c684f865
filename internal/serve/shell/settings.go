package shell

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"carronade/internal/host"
)

// A home is the folder with a user's settings. Sessions of one user share it: each
// reads it when it begins, and writes what it changes.
type home struct{ dir string }

// saving serializes changes of files by sessions of this process.
var saving sync.Mutex

func openHome(dir string) (home, error) {
	if dir == "" {
		return home{}, errors.New("the session has no folder for settings")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return home{}, fmt.Errorf("make the folder of settings: %w", err)
	}
	return home{dir}, nil
}

// load reads a file into to. A missing file leaves it unchanged.
func (h home) load(name string, to any) error {
	data, err := os.ReadFile(filepath.Join(h.dir, name+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		return hinted(fmt.Errorf("read settings: %s.json is damaged", name), "delete "+filepath.Join(h.dir, name+".json"))
	}
	return nil
}

func (h home) save(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return h.write(name+".json", append(data, '\n'))
}

// write replaces a file. Only the user can read it.
func (h home) write(name string, data []byte) error {
	if err := host.ReplaceFile(filepath.Join(h.dir, name), data); err != nil {
		return fmt.Errorf("save settings: %w", err)
	}
	return nil
}

// keepPassword writes a password to a file and returns its path. Another address or
// user has another file, so that queued jobs keep theirs.
func (h home) keepPassword(url, user, password string) (string, error) {
	sum := sha256.Sum256([]byte(url + "\x00" + user))
	name := "password-" + hex.EncodeToString(sum[:6])
	if err := h.write(name, []byte(password)); err != nil {
		return "", err
	}
	return filepath.Join(h.dir, name), nil
}

// updateNames changes the user's definitions. Other sessions may have changed them,
// so the file counts.
func (h home) updateNames(change func(names) error) (names, error) {
	saving.Lock()
	defer saving.Unlock()
	n := names{}
	if err := h.load("names", &n); err != nil {
		return nil, err
	}
	if err := change(n); err != nil {
		return nil, err
	}
	return n, h.save("names", n)
}

// A cluster is the Elasticsearch in use.
type cluster struct {
	URL      string `json:"url"`
	User     string `json:"user,omitempty"`
	Password string `json:"password_file,omitempty"`
}

// auth is the login for a drop-in's flag, by reference; "" if there is none.
func (c *cluster) auth() string {
	if c.User == "" {
		return ""
	}
	return c.User + ":file:" + c.Password
}

// A server is a system in use: where it answers and how it is made.
type server struct {
	URL    string `json:"url,omitempty"`
	Dir    string `json:"dir,omitempty"`    // of its repository
	Docker bool   `json:"docker,omitempty"` // its image is built and run
	Make   string `json:"make,omitempty"`   // builds it; "" is make
	Cmd    string `json:"cmd,omitempty"`    // starts it; "" is apm-server's
	Switch change `json:"switch,omitzero"`  // what later jobs test
	// What is tested now: Before, and then what the jobs in Switching have done since.
	Before    change      `json:"before,omitzero"`
	Switching []switching `json:"switching,omitempty"`
}

// A change is what apm switch set.
type change struct {
	Branch   string `json:"branch,omitempty"`   // without its remote
	Revision string `json:"revision,omitempty"` // as given; "" is the branch's newest
	Checkout string `json:"checkout,omitempty"` // what is checked out; "": the folder is used unchanged
	Build    string `json:"build,omitempty"`    // the command; "": nothing is built
}

// A switching is a job that builds what it switches to.
type switching struct {
	Job int64  `json:"job"`
	To  change `json:"to"`
}

// using is what status calls the server.
func (v *server) using() string {
	if v.Docker {
		return "docker"
	}
	return v.Dir
}
