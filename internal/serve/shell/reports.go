package shell

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/place"
)

// store are the flags of commands on reports, for those in the Elasticsearch in use.
// Without one they are the user's own.
func (s *session) store() []string {
	store, err := place.OfServer(s.es.URL, s.es.User, "file:"+s.es.Password)
	if err != nil || s.es.URL == "" {
		return nil
	}
	return []string{"--store", store}
}

// verify is carronade's own, on the reports of the Elasticsearch in use.
func (s *session) verify(words []string) error {
	args, err := s.filters(words[1:], "-n", "--last")
	if err != nil {
		return err
	}
	return s.run(slices.Concat([]string{"verify"}, args, s.store()))
}

// filters checks the arguments of collate and verify: options with a value, and
// filters in the tool's grammar.
func (s *session) filters(args []string, options ...string) (out []string, err error) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, _, joined := strings.Cut(a, "=")
		switch {
		case slices.Contains(options, name):
			out = append(out, a)
			if !joined {
				if i++; i == len(args) {
					return nil, fmt.Errorf("%s has no value", a)
				}
				out = append(out, args[i])
			}
		case strings.HasPrefix(a, "-") && (s.Allow == nil || s.Allow.Command != nil):
			out = append(out, a) // carronade's own, which its process checks
		case strings.HasPrefix(a, "-"):
			return nil, fmt.Errorf("%s is not allowed here", cut(a, 40))
		case !strings.ContainsAny(a, "=<>"):
			return nil, fmt.Errorf("%s is not a valid filter, must use one of = != < >", cut(a, 60))
		default:
			if rest, ok := strings.CutPrefix(a, "request_size"); ok {
				a = "target.request.bytes" + rest
			}
			out = append(out, decimalLimit(a))
		}
	}
	return out, nil
}

var limitFilter = regexp.MustCompile(`^(limit[!<=>]+)(\d+)([kmg])$`)

// decimalLimit writes the memory limit of a filter as bytes: 4g was 4,000,000,000.
func decimalLimit(filter string) string {
	m := limitFilter.FindStringSubmatch(filter)
	if m == nil {
		return filter
	}
	n, err := strconv.ParseInt(m[2], 10, 32)
	if err != nil {
		return filter
	}
	return m[1] + strconv.FormatInt(n*map[string]int64{"k": 1e3, "m": 1e6, "g": 1e9}[m[3]], 10)
}

// A collation is the part of collate's JSON that the tool's table shows.
type collation struct {
	Variable string `json:"variable"`
	Groups   []struct {
		Equal []setting `json:"equal"`
		Rows  []row     `json:"rows"`
	} `json:"groups"`
	Notes []string `json:"notes"`

	columns []column
}

type setting struct{ Name, Value string }

type row struct {
	Value        any        `json:"value"`
	Text         string     `json:"text"`
	Reports      []string   `json:"reports"`
	RevisionDate *time.Time `json:"revision_date"`
	Revision     string     `json:"revision"`
	Flags        []setting  `json:"flags"`
	Untrusted    int        `json:"untrusted"`
	Noisy        int        `json:"noisy"`
	Measured     map[string]struct {
		Median float64 `json:"median"`
		Best   bool    `json:"best"`
		Ahead  bool    `json:"ahead"`
	} `json:"measured"`
}

// collate is carronade's own, as the tool's table.
func (s *session) collate(words []string) error {
	asCSV, strict := slices.Contains(words, "--csv"), slices.Contains(words, "--strict")
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "--csv" || w == "--strict" })
	options := []string{"-n", "--last", "--sort"}
	variable, rest := firstArgument(words[1:], options)
	if variable == "" || strings.ContainsAny(variable, "=<>") {
		return fmt.Errorf("<variable> argument is required")
	}
	args, err := s.filters(rest, options...)
	if err != nil {
		return err
	}
	full := slices.Concat([]string{"collate", variable}, args, s.store())
	if slices.ContainsFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") && strings.ContainsAny(a, "=<>") }) {
		full = append(full, "--filter-starts") // as in the tool
	}
	if slices.ContainsFunc(args, func(a string) bool { return a == "--json" || a == "--markdown" || strings.HasPrefix(a, "--pictures") }) {
		return s.run(full)
	}
	full = append(full, "--json")
	if !slices.Contains(args, "--all") {
		full = append(full, "--all") // the tool showed groups of one row, too
	}
	var out bytes.Buffer
	if code := s.Run(s.work, full, &out); code != 0 {
		c := &cleaner{color: s.Color, to: func(text string) { s.out.Write([]byte(hintsHere(text))) }} //nolint:errcheck // the session ends then
		c.Write(out.Bytes())                                                                          //nolint:errcheck // never fails
		c.end()
		return errSilent{code}
	}
	var c collation
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		return fmt.Errorf("read the collation: %w", err)
	}
	c.columns = columns(strict)
	margin := "twice that of the others"
	if strict {
		c.markAsTool()
		margin = "a fifth above the others"
	}
	if asCSV {
		return s.collationCSV(&c)
	}
	s.collationText(&c, margin)
	return nil
}

// markAsTool marks the row with the best efficiency of a group as ahead if it is a fifth above the next, as the tool did.
func (c *collation) markAsTool() {
	const toolMargin = 1.2
	for i := range c.Groups {
		rows := slices.Clone(c.Groups[i].Rows)
		of := func(r row) float64 { return r.Measured["efficiency"].Median }
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(of(b), of(a)) })
		if len(rows) > 1 && of(rows[1]) > 0 && of(rows[0]) > toolMargin*of(rows[1]) {
			m := rows[0].Measured["efficiency"]
			m.Ahead = true
			rows[0].Measured["efficiency"] = m
		}
	}
}

// firstArgument is the first word that is neither an option nor the value of one of options, and the
// other words.
func firstArgument(words, options []string) (first string, rest []string) {
	for i := 0; i < len(words); i++ {
		switch {
		case slices.Contains(options, words[i]):
			i++
		case !strings.HasPrefix(words[i], "-"):
			return words[i], slices.Delete(slices.Clone(words), i, i+1)
		}
	}
	return "", words
}

// independent are the settings of a group's first line: the tool's name, and the
// field of reports.
var independent = []struct{ name, field string }{
	{"duration", "for"},
	{"events", "events"},
	{"spans", "spans"},
	{"frames", "frames"},
	{"concurrency", "concurrency"},
	{"branch", "branch"},
	{"revision", "revision"},
}

// A column of the tool's table.
type column struct {
	title, field string
	format       func(float64) string
}

// columns are those of the tool. Its latency was the inverse of the rate of requests; as in the output of test, it
// is the mean service time of a request unless strict.
func columns(strict bool) []column {
	latency := "service_mean"
	if strict {
		latency = "per_batch"
	}
	return []column{
		{"pushed   ", "pushed", perSecond},
		{"accepted  ", "accepted", perSecond},
		{"throughput", "indexed", func(x float64) string { return fmt.Sprintf("%.1fdps", x) }},
		{"latency", latency, func(x float64) string { return fmt.Sprintf("%.0fms", x*1e3) }},
		{"index", "index_share", func(x float64) string { return fmt.Sprintf("%.1f%%", x*100) }},
		{"max rss", "max_rss", decimal},
		{"effic", "efficiency", func(x float64) string { return fmt.Sprintf("%.3f", x) }},
	}
}

func perSecond(x float64) string { return decimal(x) + "ps" }

// decimal writes bytes as the tool did: with powers of ten and a small b.
func decimal(n float64) string {
	if n < 1000 {
		return fmt.Sprintf("%d b", int64(n))
	}
	i := -1
	for ; n >= 1000 && i < len("kMGTPE")-1; i++ {
		n /= 1000
	}
	return fmt.Sprintf("%.1f%cb", n, "kMGTPE"[i])
}

// heads are the titles of the table's columns.
func (c *collation) heads() []string {
	out := []string{"report id", "revision date "}
	for _, col := range c.columns {
		out = append(out, col.title)
	}
	return append(out, c.variableName())
}

func (c *collation) variableName() string {
	name := c.Variable
	for _, prefix := range []string{"flag.", "label."} {
		name = strings.TrimPrefix(name, prefix)
	}
	for _, v := range independent {
		if v.field == name {
			return v.name
		}
	}
	if name == memoryLimit {
		return "limit"
	}
	return name
}

// memoryLimit is the field that the tool called limit: bytes, and -1 without a limit.
const memoryLimit = "system-mem"

// value is the row's value of the variable.
func (c *collation) value(r *row) string {
	if n, ok := r.Value.(float64); ok && c.Variable == memoryLimit {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	if c.Variable == memoryLimit {
		return "-1"
	}
	return Printable(r.Text)
}

// cells are the cells of a row.
func (c *collation) cells(r *row) []string {
	date := "-"
	if r.RevisionDate != nil {
		date = r.RevisionDate.UTC().Format("06-01-02 15:04")
	}
	out := []string{r.id() + r.signs(), date}
	for _, col := range c.columns {
		text := "-"
		if m, ok := r.Measured[col.field]; ok {
			text = col.format(m.Median)
		}
		out = append(out, text)
	}
	return append(out, c.value(r))
}

// id is the newest report of the row.
func (r *row) id() string {
	if len(r.Reports) > 0 {
		return r.Reports[0]
	}
	return "-"
}

// signs are those of reports that are not trusted or noisy, with how many they are of several.
func (r *row) signs() (text string) {
	for _, s := range []struct {
		sign string
		n    int
	}{{"!", r.Untrusted}, {"~", r.Noisy}} {
		switch {
		case s.n == 0:
		case len(r.Reports) == 1:
			text += s.sign
		default:
			text += fmt.Sprintf("%s%d", s.sign, s.n)
		}
	}
	return text
}

// explain says what the signs of rows mean, "" if no row has one.
func (c *collation) explain() string {
	var parts []string
	for _, x := range []struct {
		n    func(*row) int
		text string
	}{{func(r *row) int { return r.Untrusted }, "!: not trusted, the generator was the limit"}, {func(r *row) int { return r.Noisy }, "~: noisy, the generator may have affected the times"}} {
		for i := range c.Groups {
			if slices.ContainsFunc(c.Groups[i].Rows, func(r row) bool { return x.n(&r) > 0 }) {
				parts = append(parts, x.text)
				break
			}
		}
	}
	return strings.Join(parts, "; ")
}

// How sure it is that a row has the best efficiency of its group.
const (
	proven   = "best"
	unproven = "ahead, unproven"
)

// winner is how sure it is that the row is the best, "" if it is not known to be.
func (r *row) winner() string {
	switch m := r.Measured["efficiency"]; {
	case m.Best:
		return proven
	case m.Ahead:
		return unproven
	}
	return ""
}

// flags are the flags of the server that differ in a group, "" if none does.
func (r *row) flags() string {
	var out []string
	for _, f := range r.Flags {
		out = append(out, f.Name+"="+f.Value)
	}
	return Printable(strings.Join(out, " "))
}

// first is the first line of a group: what its reports have in common.
func (c *collation) first(equal []setting) string {
	var parts []string
	for _, v := range independent {
		i := slices.IndexFunc(equal, func(e setting) bool { return e.Name == v.field })
		if i >= 0 && c.Variable != v.field && !(c.Variable == "branch" && v.field == "revision") {
			parts = append(parts, v.name+" "+Printable(equal[i].Value))
		}
	}
	return strings.Join(parts, "  ")
}

func (s *session) collationText(c *collation, margin string) {
	if len(c.Groups) == 0 {
		s.say("%s", Printable(strings.Join(c.Notes, "; ")))
	}
	for _, g := range c.Groups {
		s.say("%s", s.out.paint(grey, c.first(g.Equal)))
		heads := c.heads()
		flags := slices.ContainsFunc(g.Rows, func(r row) bool { return r.flags() != "" })
		if flags {
			heads = append(heads, "flags")
		}
		s.say("%s", strings.Join(heads, "  "))
		for _, r := range g.Rows {
			cells := c.cells(&r)
			if flags {
				cells = append(cells, r.flags())
			}
			s.say("%s", s.tableRow(heads, cells, len(c.columns)+3, r.winner() != ""))
		}
		for _, r := range g.Rows {
			switch r.winner() {
			case proven:
				s.say("%s has the best efficiency", r.id())
			case unproven:
				s.say("%s", wrap(r.id()+" is ahead, unproven: its efficiency is more than "+margin+", with too few repetitions to tell that from noise", ""))
			}
		}
		s.say("")
	}
	if text := c.explain(); text != "" {
		s.say("%s", wrap(text, ""))
	}
}

// tableRow pads the first cells of a row to their columns, and cuts longer ones, as the tool did, but for the
// values of the variable. The best row is green.
func (s *session) tableRow(heads, cells []string, padded int, best bool) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		if i < padded {
			if i < padded-1 {
				cell = cell[:min(len(cell), len(heads[i]))]
			}
			cell += strings.Repeat(" ", max(0, len(heads[i])-len(cell)))
		}
		b.WriteString(cell)
	}
	text := strings.TrimRight(b.String(), " ")
	if best {
		return s.out.paint(green, text)
	}
	return text
}

// collationCSV writes all groups as one table.
func (s *session) collationCSV(c *collation) error {
	w := csv.NewWriter(s.out)
	heads := []string{}
	for _, v := range independent {
		if v.field != c.Variable {
			heads = append(heads, v.name)
		}
	}
	for _, h := range append(c.heads(), "flags", "efficiency is") {
		heads = append(heads, strings.TrimSpace(h))
	}
	if err := w.Write(heads); err != nil {
		return err
	}
	for _, g := range c.Groups {
		for _, r := range g.Rows {
			var cells []string
			for _, v := range independent {
				if v.field == c.Variable {
					continue
				}
				i := slices.IndexFunc(g.Equal, func(e setting) bool { return e.Name == v.field })
				if i < 0 {
					cells = append(cells, "")
					continue
				}
				cells = append(cells, Printable(g.Equal[i].Value))
			}
			if err := w.Write(slices.Concat(cells, c.cells(&r), []string{r.flags(), r.winner()})); err != nil {
				return err
			}
		}
	}
	w.Flush()
	return w.Error()
}
