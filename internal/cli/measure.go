package cli

import (
	"context"
	"fmt"
	"io"

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
	p := newProgress(a.progressTo(), a.verbose)
	defer p.end()
	l, err := a.measuring(p)
	if err != nil {
		return nil, err
	}
	return r.Run(ctx, l)
}

// progressTo is where progress goes.
func (a *app) progressTo() io.Writer {
	if a.quiet {
		return io.Discard
	}
	return a.err
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

// comparedArms works out what an experiment's arms came to beside its control, of what may be quoted; nil where nothing is
// compared, or nothing can be.
func comparedArms(data report.Data) []stats.Comparison {
	if data.Experiment.Design.Control == "" || data.Experiment.Kind == result.KindBench {
		return nil
	}
	quoted := report.Quoted(data)
	return stats.Compare(data.Experiment.Design, quoted.Arms, quoted.Trials)
}

// verdictOf says by its error when a gate failed.
func verdictOf(data report.Data) error { return verdictIn(data, comparedArms(data)) }

// verdictIn is verdictOf with what was compared.
func verdictIn(data report.Data, list []stats.Comparison) error {
	if data.Experiment.Design.Control != "" && data.Experiment.Kind != result.KindBench {
		quoted := report.Quoted(data)
		switch {
		case len(quoted.Trials) == 0:
			return invalid(data.Trials)
		case data.Experiment.Design.Tune != nil:
			return tuneInconclusive(list, quoted.Trials)
		}
		return inconclusive(list)
	}
	if data.Experiment.Design.SLO != nil {
		return noRate(data.Finish) // a run that fails is how a search learns
	}
	if data.Experiment.Kind == result.KindTune { // the tune stands without its light speed
		_, data.Trials = result.WithoutCeilings(data.Arms, data.Trials)
	}
	return invalid(data.Trials)
}
