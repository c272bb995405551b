package cli

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"david/internal/lab"
	"david/internal/report"
	"david/internal/result"
	"david/internal/stats"
)

// request is something to measure.
type request interface {
	Run(ctx context.Context, l lab.Lab) (*result.Store, error)
}

// measure runs what is asked for and prints what it found.
func (a *app) measure(ctx context.Context, r request, asJSON bool) error {
	store, err := a.run(ctx, r)
	if err != nil {
		return err
	}
	return a.print(store, asJSON, "")
}

// run runs what is asked for, showing how far it is.
func (a *app) run(ctx context.Context, r request) (*result.Store, error) {
	p := newProgress(a.err, a.verbose)
	defer p.end()
	l, err := a.measuring(p)
	if err != nil {
		return nil, err
	}
	return r.Run(ctx, l)
}

// print shows a finished experiment and names the files that were written besides its record; it says by its
// error when a gate failed.
func (a *app) print(store *result.Store, asJSON bool, files string) error {
	data, err := load(store)
	if err != nil {
		return err
	}
	switch {
	case asJSON:
		err = report.JSON(a.out, data)
	case a.verbose:
		if err = report.Text(a.out, data); err == nil && files != "" {
			_, err = fmt.Fprintf(a.out, "\nwritten: %s\n", files)
		}
	default:
		err = report.Brief(a.out, data, files)
	}
	if err != nil {
		return err
	}
	return verdictOf(data)
}

// addVerbose adds the flag of a command whose first screen is short.
func (a *app) addVerbose(fs *pflag.FlagSet) {
	fs.BoolVarP(&a.verbose, "verbose", "v", false, "print everything, as david show does, instead of five lines; a log has each step of every trial")
}

// verdictOf says by its error when a gate failed.
func verdictOf(data report.Data) error {
	if data.Experiment.Design.Control != "" && data.Experiment.Kind != result.KindBench {
		quoted := report.Quoted(data)
		if len(quoted.Trials) == 0 {
			return invalid(data.Trials)
		}
		compared := stats.Compare(data.Experiment.Design, quoted.Arms, quoted.Trials)
		if data.Experiment.Design.Tune != nil {
			return tuneInconclusive(compared, quoted.Trials)
		}
		return inconclusive(compared)
	}
	if data.Experiment.Design.SLO != nil {
		return noRate(data.Finish) // a run that fails is how a search learns
	}
	if data.Experiment.Kind == result.KindTune { // the tune stands without its light speed
		_, data.Trials = result.WithoutCeilings(data.Arms, data.Trials)
	}
	return invalid(data.Trials)
}
