package shell

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/serve/jobs"
)

// submit queues a job and shows its output when it runs.
func (s *session) submit(r jobs.Request) error {
	_, err := s.submitted(r)
	return err
}

// submitted is submit, and returns the job.
func (s *session) submitted(r jobs.Request) (jobs.Job, error) {
	r.User, r.Dir = s.User, s.Dir
	job, ahead, err := s.Queue.Submit(s.work, r)
	if err != nil {
		return job, err
	}
	if ahead > 0 {
		s.say("(queued) position %d, job %d", ahead+1, job.ID)
	}
	s.follow(job, ahead > 0)
	return job, nil
}

// follow shows the output of a job until it ends or the session leaves it. If named,
// the job's words come first.
func (s *session) follow(job jobs.Job, named bool) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	if _, ok := s.attached[job.ID]; ok {
		s.mu.Unlock()
		cancel()
		return
	}
	s.attached[job.ID] = cancel
	shown := make(chan struct{})
	s.showing[shown] = true
	s.mu.Unlock()
	s.follows.Go(func() {
		defer func() {
			s.mu.Lock()
			delete(s.showing, shown)
			s.mu.Unlock()
			close(shown)
		}()
		defer cancel()
		c := &cleaner{color: s.Color, to: func(text string) {
			s.interject(ctx, job, text, named, false)
			named = false
		}}
		err := s.Queue.Output(ctx, job.ID, true, c)
		c.end()
		if err == nil {
			var ended jobs.Job
			if ended, err = s.Queue.Wait(ctx, job.ID); err == nil {
				job = ended
			}
		}
		s.mu.Lock()
		if ctx.Err() == nil { // else detach has removed it
			delete(s.attached, job.ID)
		}
		s.mu.Unlock()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			s.interject(ctx, job, s.out.paint(red, Printable(err.Error()))+"\n", named, true)
		default:
			s.interject(ctx, job, s.ending(job), named, true)
		}
	})
}

// interject writes output of a job. Between the output of different jobs a line says
// whose it is. After detach has ended the context, nothing is written: what follows a job may notice that later.
func (s *session) interject(ctx context.Context, job jobs.Job, text string, named, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if text != "" {
		if named || s.last != 0 && s.last != job.ID && len(s.attached) > 1 {
			text = s.jobLine(job) + "\n" + text
		}
		s.last = job.ID
	}
	s.out.interject(text, last)
}

// ending is what a session says when a job ended; "" if it did what it should.
func (s *session) ending(job jobs.Job) string {
	var text string
	switch {
	case job.State == jobs.Cancelled || job.State == jobs.Interrupted:
		text = string(job.State)
	case job.Exit > 0 || job.State == jobs.Failed:
		text = fmt.Sprintf("ended with exit code %d", job.Exit)
		if job.Exit < 0 {
			text = "failed"
		}
	default:
		return ""
	}
	if job.Reason != "" {
		text += ": " + Printable(job.Reason)
	}
	return s.out.paint(red, "job "+strconv.FormatInt(job.ID, 10)+" "+text) + "\n"
}

// jobLine names a job, as in status.
func (s *session) jobLine(job jobs.Job) string {
	return " " + s.out.paint(magenta, ID(job.Typed)) + "  " + s.out.paint(grey, "["+Printable(job.Typed)+"]")
}

// open returns the jobs that have not ended, in the order in which they were
// submitted.
func (s *session) open() ([]jobs.Job, error) {
	ctx, cancel := s.soonCtx()
	defer cancel()
	return s.Queue.Jobs(ctx, jobs.Filter{States: []jobs.State{jobs.Queued, jobs.Running}})
}

// cancel cancels the user's running jobs, or the jobs with an id or a number. As in the tool it is no error
// if there are none: what is left shows it.
func (s *session) cancel(words []string) error {
	if len(words) > 2 {
		return s.usage(words)
	}
	list, err := s.open()
	if err != nil {
		return err
	}
	var chosen []jobs.Job
	others := 0
	for _, j := range list {
		if len(words) == 1 && j.State != jobs.Running || len(words) == 2 && !is(j, words[1]) {
			continue
		}
		if j.User != s.User && (!s.Owner || len(words) == 1) {
			others++
			continue
		}
		chosen = append(chosen, j)
	}
	switch {
	case len(chosen) == 0 && others > 0 && len(words) == 2:
		return errors.New("the job belongs to another user")
	}
	for _, j := range chosen {
		if err := s.Queue.Cancel(s.work, j.ID); err != nil {
			return err
		}
	}
	if len(words) == 1 {
		s.say("ok")
		return nil
	}
	return s.queue()
}

// is reports whether text is a job's number or id. An id of six digits is not taken
// for a number.
func is(j jobs.Job, text string) bool {
	if ID(j.Typed) == text {
		return true
	}
	return strconv.FormatInt(j.ID, 10) == strings.TrimPrefix(text, "#")
}

// queue writes the jobs that have not ended.
func (s *session) queue() error {
	list, err := s.open()
	if err != nil {
		return err
	}
	waiting := slices.DeleteFunc(slices.Clone(list), func(j jobs.Job) bool { return j.State == jobs.Running })
	for _, j := range list {
		if j.State == jobs.Running {
			s.say("running%s%s", s.jobLine(j), s.whose(j))
		}
	}
	s.say("%d commands queued", len(waiting))
	for _, j := range waiting {
		s.say("%s%s", s.jobLine(j), s.whose(j))
	}
	return nil
}

// whose names the owner of another user's job, and says whether it may do more than others.
func (s *session) whose(j jobs.Job) (text string) {
	if j.User != s.User {
		text = "  of " + Printable(j.User)
	}
	if s.Walls != nil {
		if wider := s.Walls(j.Args); wider != "" {
			text += "  (walls: " + wider + ")"
		}
	}
	return text
}

func (s *session) attach(words []string) error {
	if len(words) != 2 {
		return s.usage(words)
	}
	ctx, cancel := s.soonCtx()
	defer cancel()
	list, err := s.Queue.Jobs(ctx, jobs.Filter{})
	if err != nil {
		return err
	}
	for _, j := range slices.Backward(list) { // the newest of several with the same words
		if is(j, words[1]) && (j.User == s.User || s.Owner || s.Allow == nil) {
			s.follow(j, true)
			return nil
		}
	}
	return hinted(fmt.Errorf("no job %s of yours", cut(words[1], 30)), "status lists the jobs")
}

func (s *session) detach(words []string) error {
	if len(words) != 1 {
		return s.usage(words)
	}
	s.mu.Lock()
	n := len(s.attached)
	for _, cancel := range s.attached {
		cancel()
	}
	clear(s.attached)
	s.mu.Unlock()
	if n == 0 {
		s.say("nothing is attached")
		return nil
	}
	s.say("ok")
	return nil
}

// wait waits until the output of all attached jobs was written, or the user interrupts it.
func (s *session) wait(words []string) error {
	if len(words) != 1 {
		return s.usage(words)
	}
	s.mu.Lock()
	showing := slices.Collect(maps.Keys(s.showing))
	s.mu.Unlock()
	for _, shown := range showing {
		select {
		case <-shown:
		case <-s.ctx.Done():
			return nil
		case <-s.work.Done():
			return hinted(errInterrupted, "the jobs go on; cancel stops them")
		}
	}
	return nil
}
