package fleet

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// What ManifestOptions leave out. The target is every name of the cluster in Strimzi's quick start: its
// bootstrap service, and the names that its brokers announce.
const (
	DefaultAgents = 8
	DefaultImage  = "carronade:latest"
	DefaultTarget = "*.kafka.svc:9092"
)

// coordinatorPort is the port of the coordinator.
const coordinatorPort = 8236

// maxAgents is how many agents can be connected to a coordinator: bus.MaxAgents.
const maxAgents = 64

// ManifestOptions are what differs between fleets. The zero value is a fleet with the defaults.
type ManifestOptions struct {
	Agents       int      // 0 means DefaultAgents
	Image        string   // "" means DefaultImage
	Namespace    string   // "" leaves it to kubectl
	AllowTargets []string // patterns of the addresses that agents may load, HOST or HOST:PORT; none means DefaultTarget
}

// A manifestFile is one file of the Kustomize base.
type manifestFile struct {
	Name string
	Data []byte
}

//go:embed objects
var objects embed.FS

// manifestNames are the files in the order in which Kubernetes should create their objects.
var manifestNames = []string{"secret.yaml", "coordinator.yaml", "agents.yaml", "network.yaml"}

const kustomization = "kustomization.yaml"

// Manifest returns the Kubernetes objects of a fleet as one YAML document stream, for kubectl
// apply -f: a coordinator, its agents, the secret with their join files, and rules for the
// network. The files in packaging/kubernetes are the same with the defaults. An error says which
// option is wrong. Text of an option only gets into the objects as a quoted string, or after a
// check of its characters, so no option can add a field.
func Manifest(o ManifestOptions) ([]byte, error) {
	files, err := manifestFiles(o)
	if err != nil {
		return nil, err
	}
	var all []byte
	for _, f := range files {
		if f.Name == kustomization {
			continue
		}
		if len(all) > 0 {
			all = append(all, "---\n"...)
		}
		all = append(all, f.Data...)
	}
	return all, nil
}

// manifestFiles returns the same objects as the files of a Kustomize base.
func manifestFiles(o ManifestOptions) ([]manifestFile, error) {
	o.Agents = cmp.Or(o.Agents, DefaultAgents)
	o.Image = cmp.Or(o.Image, DefaultImage)
	if len(o.AllowTargets) == 0 {
		o.AllowTargets = []string{DefaultTarget}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	fill := strings.NewReplacer(
		"${agents}", strconv.Itoa(o.Agents),
		"${image}", scalar(o.Image),
		"${namespace}", field("\n  namespace: ", o.Namespace),
		"${kustomize}", field("\nnamespace: ", o.Namespace),
		"${joins}", joins(o.Agents),
		"${port}", strconv.Itoa(coordinatorPort),
		"${allow}", allow(o.AllowTargets),
		"${targets}", egress(o.AllowTargets),
	)
	var files []manifestFile
	for _, name := range append(slices.Clip(manifestNames), kustomization) {
		text, err := objects.ReadFile("objects/" + name)
		if err != nil {
			return nil, err // names are fixed, so this cannot happen
		}
		files = append(files, manifestFile{Name: name, Data: []byte(fill.Replace(string(text)))})
	}
	return files, nil
}

var (
	// The name of a namespace is a DNS label, and an image is a reference: neither has
	// spaces or control characters. They are compiled when they are needed: a pattern with
	// a large count takes 350 KB.
	namespaceName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`) })
	imageReference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,510}$`) })
)

func (o *ManifestOptions) check() error {
	switch {
	case o.Agents < 0 || o.Agents > maxAgents:
		return fmt.Errorf("%d agents: want 1 to %d", o.Agents, maxAgents)
	case !imageReference().MatchString(o.Image):
		return fmt.Errorf("%q is not the name of an image", o.Image)
	case o.Namespace != "" && !namespaceName().MatchString(o.Namespace):
		return fmt.Errorf("%q is not the name of a namespace: want letters a to z, digits and hyphens, 63 at most", o.Namespace)
	}
	for _, t := range o.AllowTargets {
		if t == "" || !visible(t) || strings.ContainsAny(t, "/,") {
			return fmt.Errorf("%q is not a pattern of addresses", t)
		}
		if strings.Contains(t, "$(") {
			return fmt.Errorf("%q: Kubernetes would replace $(...) by a variable", t)
		}
	}
	return nil
}

// visible reports whether s consists of characters that can be seen.
func visible(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) })
}

// field is a line, or nothing without a value.
func field(before, value string) string {
	if value == "" {
		return ""
	}
	return before + scalar(value)
}

// plain are texts that YAML reads as the same text without quotes, such as names of
// images. Numbers and words such as "yes" are not among them.
var plain = regexp.MustCompile(`^[a-z][a-z0-9+]*[-./:][A-Za-z0-9._:/@+-]*[A-Za-z0-9/]$`)

// scalar is a text as YAML: JSON's strings are YAML's.
func scalar(s string) string {
	if plain.MatchString(s) {
		return s
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// joins gives each agent a folder of the secret's volume, with its own join file.
func joins(agents int) string {
	var b strings.Builder
	for i := range agents {
		const item = "\n              "
		fmt.Fprintf(&b, item+"- key: carronade-agent-%d.join"+item+"  path: carronade-agent-%[1]d/fleet.join", i)
	}
	return b.String()
}

func allow(targets []string) string {
	var b strings.Builder
	for _, t := range targets {
		const item = "\n            - "
		b.WriteString(item + "--allow-target" + item + scalar(t))
	}
	return b.String()
}
