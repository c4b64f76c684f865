package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"

	"carronade/internal/store/sqlite"
	"carronade/internal/workload"
	"carronade/protocol"
)

// configVariable is the environment variable that names another configuration file.
const configVariable = "CARRONADE_CONFIG"

// configPath returns the path of the configuration file, and whether the user named it.
func configPath() (path string, asked bool) {
	if path := os.Getenv(configVariable); path != "" {
		return path, true
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", false
	}
	return filepath.Join(dir, "carronade", "config.yaml"), false
}

// configuration reads the configuration file: defaults for flags, one per line, as in a
// workload file. A missing file is empty. The file is read once.
func (s *session) configuration() (*workload.Document, error) {
	s.config.Do(func() { s.configured, s.configError = readConfig(s.Kinds) })
	return s.configured, s.configError
}

func readConfig(kinds []protocol.Kind) (*workload.Document, error) {
	path, asked := configPath()
	if path == "" {
		return new(workload.Document), nil
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !asked:
		return new(workload.Document), nil
	case err != nil:
		return nil, &protocol.Error{Err: fmt.Errorf("cannot read the configuration %s: %s", path, cmdutil.Reason(err)), Hint: "make it readable, or point " + configVariable + " to another file"}
	case len(strings.TrimSpace(string(data))) == 0:
		return new(workload.Document), nil
	}
	doc, err := workload.ParseDocument(path, data)
	if err != nil {
		return nil, err
	}
	known := cmdutil.AllSettings(kinds)
	var faults []error
	for _, e := range doc.Entries {
		i := slices.IndexFunc(known, func(s workload.Setting) bool { return s.Name == e.Name })
		if i < 0 {
			faults = append(faults, unknownSetting(e, kinds))
			continue
		}
		set := &known[i]
		if set.Independent || e.Name == "target" {
			faults = append(faults, &protocol.Error{
				Doing: e.Where, Err: errors.New("is a setting of the workload, which the configuration cannot have"),
				Hint: "put it into a workload file (carronade run -f), so that runs with and without it can be distinguished",
			})
			continue
		}
		for _, text := range e.Values {
			if err := set.Check(text); err != nil {
				faults = append(faults, workload.At(e.Where, err))
			}
		}
	}
	return doc, errors.Join(faults...)
}

func unknownSetting(e workload.Entry, kinds []protocol.Kind) error {
	return &protocol.Error{
		Doing: e.Where, Err: errors.New("unknown setting"),
		Hint: advice.DidYouMean(e.Name, workload.Names(kinds), "%s", "the keys are flags of carronade run, without the dashes"),
	}
}

// withConfiguration adds the configuration below flags and the workload file, which both override it.
// Settings that do not apply to this target and operation are left out, since one file serves
// all of them.
func (s *session) withConfiguration(t *cmdutil.Settings, file *workload.Document) (*workload.Document, error) {
	conf, err := s.configuration()
	if err != nil {
		return file, err
	}
	if err := s.permitted(conf, &t.Doc, file); err != nil || len(conf.Entries) == 0 {
		return file, err
	}
	below := &workload.Document{}
	if file != nil {
		below.Entries, below.Parts = slices.Clone(file.Entries), file.Parts
	}
	last := func(name string) string {
		if v := t.Last(name); v != "" {
			return v
		}
		return (&cmdutil.Settings{Doc: *below}).Last(name)
	}
	kind, _, err := workload.ParseTarget(s.Kinds, last("target"))
	if err != nil {
		return file, nil //nolint:nilerr // reported when the workload is resolved
	}
	op := last("op")
	if ops := kind.Ops(); op == "" && len(ops) > 0 {
		op = ops[0]
	}
	table := workload.Table(kind)
	var flags, rest []workload.Entry
	for _, e := range conf.Entries {
		i := slices.IndexFunc(table, func(s workload.Setting) bool { return s.Name == e.Name })
		switch {
		case i < 0 || !table[i].AppliesTo(op):
		case table[i].FlagOnly:
			flags = append(flags, e)
		default:
			rest = append(rest, e)
		}
	}
	t.Doc.Entries = append(flags, t.Doc.Entries...)
	below.Entries = append(rest, below.Entries...)
	return below, nil
}

// defaultStore is the place of reports unless a flag or the configuration names another.
func (s *session) defaultStore() (string, error) {
	if s.rules != nil && s.rules.Store != "" {
		return s.rules.Store, nil
	}
	conf, err := s.configuration()
	if err != nil {
		return "", err
	}
	if place := (&cmdutil.Settings{Doc: *conf}).Last("store"); place != "" {
		return place, nil
	}
	return sqlite.Default()
}

const configLong = `The configuration: defaults for the flags of stores, of collectors of metrics
and of connections to servers. It is carronade/config.yaml in
your configuration folder (XDG_CONFIG_HOME, or ~/.config), or the file that
CARRONADE_CONFIG names, with lines such as

    store: /srv/carronade/reports.db
    metrics-addr: 9464
    label: {team: ingest}

Flags and workload files override it. Settings of the workload, such as the
rate, do not belong there. Give secrets by reference: env:NAME or file:PATH.`

// configCommand shows the configuration.
func (s *session) configCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "config", Short: "defaults for flags, and where reports are kept",
		Long: configLong, Args: cmdutil.Args(0, 0, "nothing"),
		RunE: cmdutil.Run(func(*cobra.Command, []string) error {
			doc, err := s.configuration()
			if err != nil {
				return err
			}
			path, _ := configPath()
			_, statErr := os.Stat(path)
			place, err := s.defaultStore()
			if err != nil {
				return err
			}
			c := configState{File: path, Exists: statErr == nil, Store: place, Settings: make(map[string]any)}
			for _, e := range doc.Entries {
				c.Settings[e.Name] = e.Values
				if len(e.Values) == 1 {
					c.Settings[e.Name] = e.Values[0]
				}
			}
			if asJSON {
				return cmdutil.WriteJSON(s.out, c)
			}
			return c.text(s.out, doc)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// configState is what carronade config --json prints.
type configState struct {
	File     string         `json:"file"`
	Exists   bool           `json:"exists"`
	Store    string         `json:"store"` // where reports go by default
	Settings map[string]any `json:"settings"`
}

func (c *configState) text(w io.Writer, doc *workload.Document) error {
	about := ""
	if !c.Exists {
		about = " (not there)"
	}
	_, err := fmt.Fprintf(w, "file   %s%s\nstore  %s\n", c.File, about, c.Store)
	if len(doc.Entries) > 0 {
		fmt.Fprintln(w)
	}
	for _, e := range doc.Entries {
		fmt.Fprintf(w, "%s: %s\n", e.Name, strings.Join(e.Values, ", "))
	}
	return err
}
