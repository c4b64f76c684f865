package export

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"carronade/internal/report"
)

// A Suite is a group of test cases, as CI servers show them: one report, or one
// comparison.
type Suite struct {
	Name  string
	At    time.Time
	Took  time.Duration
	Facts map[string]string // shown as properties
	Cases []Case
}

// A Case is one condition that holds or does not.
type Case struct {
	Name string
	// Text says what was found and what was expected.
	Text string
	// Failed: it was required and does not hold. Error: it could not be
	// determined, for the reason in Text. Skipped: it cannot be determined, but
	// that is not a fault. At most one of them.
	Failed, Error, Skipped bool
}

// The XML that Jenkins, GitLab, GitHub's actions and others read: testsuites,
// testsuite, testcase with failure, error or skipped.
type (
	xmlSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     string     `xml:"time,attr"`
		Suites   []xmlSuite `xml:"testsuite"`
	}
	xmlSuite struct {
		Name       string        `xml:"name,attr"`
		Tests      int           `xml:"tests,attr"`
		Failures   int           `xml:"failures,attr"`
		Errors     int           `xml:"errors,attr"`
		Skipped    int           `xml:"skipped,attr"`
		Time       string        `xml:"time,attr"`
		Timestamp  string        `xml:"timestamp,attr,omitempty"`
		Properties *xmlFacts     `xml:"properties"`
		Cases      []xmlTestCase `xml:"testcase"`
	}
	xmlFacts struct {
		Properties []xmlFact `xml:"property"`
	}
	xmlFact struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	xmlTestCase struct {
		Name      string  `xml:"name,attr"`
		Classname string  `xml:"classname,attr"`
		Time      string  `xml:"time,attr"`
		Failure   *xmlWhy `xml:"failure"`
		Error     *xmlWhy `xml:"error"`
		Skipped   *xmlWhy `xml:"skipped"`
		Out       string  `xml:"system-out,omitempty"`
	}
	xmlWhy struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes suites as JUnit XML.
func JUnit(w io.Writer, suites []Suite) error {
	var all xmlSuites
	took := time.Duration(0)
	for i := range suites {
		s := &suites[i]
		x := xmlSuite{Name: printable(s.Name), Time: seconds(s.Took), Tests: len(s.Cases)}
		if !s.At.IsZero() {
			x.Timestamp = s.At.UTC().Format("2006-01-02T15:04:05")
		}
		if len(s.Facts) > 0 {
			x.Properties = &xmlFacts{}
			for _, k := range sorted(s.Facts) {
				x.Properties.Properties = append(x.Properties.Properties, xmlFact{printable(k), printable(s.Facts[k])})
			}
		}
		for _, c := range s.Cases {
			tc := xmlTestCase{Name: printable(c.Name), Classname: x.Name, Time: seconds(0)}
			why := &xmlWhy{Message: printable(c.Text), Text: printable(c.Text)}
			switch {
			case c.Failed:
				tc.Failure = why
				x.Failures++
			case c.Error:
				tc.Error = why
				x.Errors++
			case c.Skipped:
				tc.Skipped = why
				x.Skipped++
			default:
				tc.Out = printable(c.Text)
			}
			x.Cases = append(x.Cases, tc)
		}
		took += s.Took
		all.Tests += x.Tests
		all.Failures += x.Failures
		all.Errors += x.Errors
		all.Skipped += x.Skipped
		all.Suites = append(all.Suites, x)
	}
	all.Time = seconds(took)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// writeJUnit writes one suite per report: whether the run completed, whether it
// can be trusted, and a case for each limit that was set.
func writeJUnit(w io.Writer, rs Reports, _ Options) error {
	var suites []Suite
	err := rs.each(func(_ int, d *report.Document) error {
		s := Suite{
			Name: strings.TrimSpace(d.Op + " " + d.Target + " " + d.ID), At: d.StartedAt, Took: d.EndedAt.Sub(d.StartedAt),
			Facts: map[string]string{"report": d.ID, "version": d.Version},
		}
		for _, r := range d.Figures() {
			if r.Name == "throughput" && d.IsRun() {
				s.Facts[r.Label] = r.Text() + " " + r.Remark
			}
		}
		if !d.IsRun() {
			s.Facts["answer"] = d.Headline()
		}
		for k, v := range d.Labels {
			s.Facts["label."+k] = v
		}
		s.Cases = cases(d)
		suites = append(suites, s)
		return nil
	})
	if err != nil {
		return err
	}
	return JUnit(w, suites)
}

// cases are the verdicts that matter to CI: whether the run completed as
// requested, whether it is trusted, and the limits.
func cases(d *report.Document) []Case {
	out := []Case{{Name: "done", Text: "the run completed"}}
	var wrong []string
	for _, v := range d.Verdicts() {
		text := strings.Join(v.Texts, "; ")
		switch {
		case v.On == report.OnEnd && v.Mark >= report.Caution, v.On == report.OnOutput:
			wrong = append(wrong, text)
			out[0].Error, out[0].Text = true, strings.Join(wrong, "; ")
		case v.On == report.OnTrust:
			if v.Mark == report.Caution {
				text = v.Label + ": " + text
			}
			out = append(out, Case{Name: "trusted", Text: text, Error: v.Mark == report.Bad})
		case v.On == report.OnLimit:
			if v.Mark == report.Open {
				text = v.Label + ": " + text
			}
			out = append(out, Case{Name: v.Limit, Text: text, Failed: v.Mark == report.Bad, Skipped: v.Mark == report.Open})
		}
	}
	return out
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// printable removes characters that XML 1.0 cannot represent.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r < 0xd800 || r >= 0xe000 && r <= 0xfffd || r >= 0x10000:
			return r
		}
		return -1
	}, s)
}
