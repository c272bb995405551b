package sandbox

import (
	"errors"
	"fmt"
	"slices"

	"david/internal/kernel"
	"david/internal/result"
)

// SetKernel gives kernel settings other values, for one arm, until ResetKernel. Those of another arm are set
// back first. What each was is in the journal before it is changed, so that the next david sets it back where
// this one is killed.
func (w *Workspace) SetKernel(settings []result.KernelSetting) error {
	if err := w.ResetKernel(); err != nil {
		return err
	}
	for _, s := range settings {
		if err := w.journal.set(s); err != nil {
			return errors.Join(fmt.Errorf("cannot set the arm's kernel settings: %w", err), w.ResetKernel())
		}
	}
	return nil
}

// set changes one setting.
func (j *journal) set(s result.KernelSetting) error {
	m := kernel.Machine{Root: "/", Disk: s.Disk}
	steps, err := m.Steps([]string{s.Name + "=" + s.Value}, false)
	if err != nil || len(steps) == 0 {
		return err
	}
	if err := j.kernel(m.Boot(), steps[0]); err != nil {
		return err
	}
	undone, err := m.Make(steps[0])
	if undone {
		err = errors.Join(err, j.kernelBack(steps[0]))
	}
	return err
}

// ResetKernel sets back what SetKernel set. That somebody else changed one of the settings meanwhile is an
// error: the arm did not run with it.
func (w *Workspace) ResetKernel() error {
	var foreign error
	for _, c := range slices.Backward(slices.Clone(w.journal.Kernel)) {
		restored, err := (kernel.Machine{Root: "/"}).Restore(c)
		if err != nil {
			return errors.Join(foreign, err) // the journal still has it
		}
		if !restored {
			foreign = errors.Join(foreign, fmt.Errorf("%w: %s, while it was measured with %s; it is left as it is, and was %s before", kernel.ErrChanged, c.Name, c.After, c.Before))
		}
		if err := w.journal.kernelBack(c); err != nil {
			return errors.Join(foreign, err)
		}
	}
	return foreign
}

func (j *journal) kernel(boot string, c kernel.Change) error {
	return j.update(func() { j.Boot, j.Kernel = boot, append(j.Kernel, c) })
}

func (j *journal) kernelBack(c kernel.Change) error {
	return j.update(func() { j.Kernel = slices.DeleteFunc(j.Kernel, func(o kernel.Change) bool { return o == c }) })
}

// restoreKernel sets back what a david that is dead had set; what somebody else changed since, or a reboot
// undid, is left, and the former is said.
func (j *journal) restoreKernel(say func(string)) error {
	m := kernel.Machine{Root: "/"}
	if len(j.Kernel) == 0 || j.Boot != m.Boot() {
		return nil
	}
	for _, c := range slices.Backward(j.Kernel) {
		restored, err := m.Restore(c)
		if err != nil {
			return err
		}
		if now, err := m.Now(c); err == nil && !restored && now != c.Before {
			say(fmt.Sprintf("%s is %s, and is left: somebody else changed it after david, which had set %s in the place of %s", c.Title(), now, c.After, c.Before))
		}
	}
	return nil
}

// checkKernel says what of a journal's kernel settings is not what david sets.
func (j *journal) checkKernel() error {
	for _, c := range j.Kernel {
		if err := c.Check(); err != nil {
			return err
		}
	}
	return nil
}
