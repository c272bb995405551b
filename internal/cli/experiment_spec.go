package cli

import (
	"bytes"
	"context"
	"fmt"

	"david/internal/input"
	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/server"
	"david/internal/spec"
)

// foresee refuses what a run would: settings and caps beyond this machine. Settings of one flavour only are looked at where the
// spec names the flavour, as no server is asked.
func (a *app) foresee(ctx context.Context, s spec.Spec, noVolume bool) error {
	memory, err := a.lab().Memory(ctx)
	if err != nil {
		return err
	}
	var arms []result.Arm
	for _, arm := range s.Arms {
		if err := foreseeArm(s, arm, memory); err != nil {
			return fmt.Errorf("arm %s: %w", arm.Name, err)
		}
		arms = append(arms, result.Arm{Name: arm.Name, Caps: s.CapsOf(arm)})
	}
	return a.lab().CheckCaps(ctx, arms, noVolume)
}

func foreseeArm(s spec.Spec, arm spec.Arm, memory int64) error {
	e, named := server.ParseEngine(s.ServerOf(arm))
	if !named {
		e.Flavour, arm.MySQL, arm.MariaDB = mycnf.MySQL, nil, nil
	}
	sets, err := s.Settings(arm, e.Flavour, memory)
	if err != nil {
		return codedError{exitUsage, err}
	}
	for _, text := range sets {
		setting, err := mycnf.ParseSetting(text)
		if err != nil {
			return codedError{exitUsage, err}
		}
		if err := lab.Possible(setting, memory); err != nil {
			return err
		}
	}
	return nil
}

// longestSpec and longestCatalogue bound files in YAML, in bytes.
const (
	longestSpec      = 256 << 10
	longestCatalogue = 256 << 10
)

func readSpec(path string) (spec.Spec, error) {
	text, err := input.ReadDocument(path, longestSpec)
	if err != nil {
		return spec.Spec{}, usage("cannot read the spec: %w", err)
	}
	s, err := spec.Parse(bytes.NewReader(text), path)
	if err != nil {
		return s, codedError{exitUsage, err}
	}
	return s, nil
}

// openCnfs reads the arms' option files, so that a wrong one is met before anything is run.
func openCnfs(s spec.Spec, dir string) error {
	for _, arm := range s.Arms {
		path := arm.CnfPath(dir)
		if path == "" {
			continue
		}
		if _, err := lab.ReadCnf(path); err != nil {
			return fmt.Errorf("arm %s: %w", arm.Name, err)
		}
	}
	return nil
}
