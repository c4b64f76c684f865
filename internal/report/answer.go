package report

import (
	"cmp"
	"slices"
	"strings"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/verdict/trust"
	"carronade/measure"
)

// An Answer is what a report says first: one word, and the limit, the reason or the problem that decided it.
type Answer struct {
	Word string
	Mark Mark
	Text string // "": the word says it all
}

// The words of answers.
const (
	Passed    = "PASS"
	Failed    = "FAIL"
	Undecided = "CANNOT TELL"
	Done      = "DONE"
	Distrust  = "NOT TRUSTED"
	CutShort  = "INTERRUPTED"
)

// Answer is the answer of a report. It says in a word what the exit code says in a number.
func (d *Document) Answer() Answer {
	limits := d.Limits()
	switch d.ExitCode() {
	case host.ExitInterrupted:
		if d.Partial {
			return Answer{CutShort, Caution, "after " + seconds(d.Totals.ElapsedS) + " of the measurement; these are the results until then"}
		}
		return Answer{CutShort, Caution, "no limit was set, so nothing is missing"}
	case host.ExitFailed, host.ExitBroken:
		if c, dead := d.Dead(); dead {
			return Answer{Failed, Bad, c.Text}
		}
		broken := named(limits, func(c *Check) bool { return !c.OK && !c.CannotTell })
		return Answer{Failed, Bad, cmp.Or(broken, strings.Join(d.Problems, "; "), d.ending())}
	case host.ExitUntrusted:
		return Answer{Distrust, Bad, strings.Join(d.distrust(d.Trust.Reasons), "; ")}
	case host.ExitCannotTell:
		return Answer{Undecided, Open, named(limits, func(c *Check) bool { return c.CannotTell })}
	}
	if d.Search != nil && d.Search.AtLeast > 0 || d.Scenario != nil && len(d.Scenario.Checks) > 0 {
		return Answer{Passed, Good, ""}
	}
	if len(limits) == 0 {
		return Answer{Done, Good, ""}
	}
	return Answer{Passed, Good, named(limits, func(*Check) bool { return true })}
}

// named are the limits that are so, with their values.
func named(limits []Check, so func(*Check) bool) string {
	var out []string
	for i := range limits {
		if c := &limits[i]; so(c) {
			out = append(out, c.Name+": "+c.Reason())
		}
	}
	return strings.Join(out, "; ")
}

// answerText prints the answer: the first line, or the first lines if it is long.
func (d *Document) answerText(p *layout.Page) {
	a := d.Answer()
	p.Answer(answerColor(a.Mark), a.Word, a.Text)
}

func answerColor(m Mark) string { return cmp.Or(markColors[m], layout.Bold) }

// distrust are the reasons of the generator's verdict in short sentences: what happened, how much of the number it
// is, what to do. The document has the rest. Times that the same event lengthened stand in one sentence, and what other
// programs took of the machine stands in the first.
func (d *Document) distrust(texts []string) []string {
	var out []string
	cause, late, caused := d.MachineCause(), false, false
	for _, text := range texts {
		fact, rest, _ := strings.Cut(text, "; ")
		lengthened := strings.Contains(fact, trust.Late)
		if lengthened && late {
			continue
		}
		late = late || lengthened
		var why string
		if fact, why, _ = strings.Cut(fact, ": its "); why != "" && cause == "" {
			fact = strings.Replace(fact, trust.Late, "", 1) + ": the generator stood still"
			if i := strings.Index(why, "("); i >= 0 {
				by, _, _ := strings.Cut(strings.TrimRight(why[i+1:], ")"), ":")
				fact += " (" + by + ")"
			}
		}
		switch quieter := "use a faster or quieter machine"; {
		case cause != "" && (lengthened || why != ""):
			if fact = strings.Replace(fact, trust.Late, "", 1); !caused {
				fact += ": " + cause + "; " + cmp.Or(d.stopOthers(), quieter)
			}
			caused = true
		case why != "" && rest != "":
			fact += "; " + quieter
		case rest != "":
			fact += "; " + rest
		}
		out = append(out, fact)
	}
	return out
}

// mainReason is the first reason for distrust, without what to do.
func (d *Document) mainReason() string {
	fact, _, _ := strings.Cut(d.distrust(d.Trust.Reasons)[0], "; ")
	return fact
}

// doubts are what makes a run noisy, without the times that are printed as ranges.
func (d *Document) doubts() []string {
	return slices.DeleteFunc(slices.Clone(d.Trust.Doubts), func(s string) bool { return len(d.Steps) == 0 && strings.HasSuffix(s, trust.Late) })
}

// othersWaited begins the cause of a freeze in which other programs had the processors.
const othersWaited = "other processes used the processors"

// MachineCause says that other programs took the processors from the generator, and how much; "" if that is not known.
func (d *Document) MachineCause() string {
	if d.Others.Text() != "" {
		return strings.NewReplacer(" use ", " used ", " gives ", " gave ").Replace(d.Others.Text())
	}
	for i := range d.Freezes.Longest {
		if strings.HasPrefix(d.Freezes.Longest[i].Cause, othersWaited) {
			return "other programs used the processors"
		}
	}
	return ""
}

// stopOthers is the advice about the programs that used the machine before the run; "" without them.
func (d *Document) stopOthers() string {
	switch {
	case d.Others.Text() == "":
		return ""
	case d.Others.Steal > d.Others.Programs:
		return "use another machine"
	}
	return "stop them, or use a quieter machine"
}

// firstPage are the verdicts below the answer: what is unusual, in few words, each once. Warnings and remarks come
// last, except the one that says why there is nothing. The complete report has all of them.
func (d *Document) firstPage() (first, last []Verdict) {
	a := d.Answer()
	_, dead := d.Dead()
	var out []Verdict
	for _, v := range d.Verdicts() {
		switch {
		case v.Mark == Good && v.On != OnLimit, v.Label == "freezes", v.Label == "exit code", v.Label == "steady?":
			continue
		case v.On == OnLimit && v.Limit != "" && strings.Contains(a.Text, v.Limit+": "), v.On == OnLimit && dead && v.Limit == Taken:
			continue
		case v.On == OnOutput && strings.Contains(a.Text, v.Texts[0]), v.On == OnEnd && (a.Word == CutShort || a.Text == d.ending()):
			continue
		case v.On == OnTrust && a.Word == Distrust, v.On == OnSystem && v.Label == "failed":
			continue // the failures say it
		case d.Steady.Outage != "" && (v.Label == "stalls" || v.Label == "not steady"):
			continue // the outage says it
		}
		switch {
		case v.On == OnTrust && v.Mark == Caution:
			if v.Texts = d.doubts(); len(v.Texts) == 0 {
				continue
			}
		case v.On == OnTrust:
			v.Texts = d.distrust(v.Texts)
		case v.Label == "partial" && a.Word == Distrust: // which says why
			v.Texts = []string{"after " + seconds(d.Totals.ElapsedS) + " of the measurement; these are the results until then"}
		}
		out = append(out, v)
	}
	slices.SortStableFunc(out, func(a, b Verdict) int { return cmp.Compare(b.Mark, a.Mark) })
	for _, v := range out {
		switch {
		case v.On == OnWarning && d.explainsNotice(v.Texts[0]):
			first = slices.Insert(first, 0, v)
		case v.On == OnWarning || v.Mark == Remark || v.Mark == Good:
			last = append(last, v)
		default:
			first = append(first, v)
		}
	}
	return first, last
}

// explainsNotice reports whether a warning says why the notice is so, such as that nothing was read.
func (d *Document) explainsNotice(warning string) bool {
	return d.Notice != "" && strings.HasPrefix(warning, d.Notice+": ")
}

// others says that others used the machine when the run began, unless the reason for distrust does.
func (d *Document) others() string {
	if d.Others.Text() == "" || d.TrustLevel() != measure.Trusted {
		return ""
	}
	return d.MachineCause() + " before the run"
}
