package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"david/internal/mycnf"
	"david/internal/rules"
	"david/internal/server"
	"david/internal/stats"
)

// ownFile is the user's own option file as the control of a race.
type ownFile struct {
	File     string          `json:"file"`
	Settings []mycnf.Setting `json:"settings"`
	// Shared are those of Settings that every arm has to have alike, or no verdict could be given: the members of the durability
	// lock that have no safe value of their own, as transaction_isolation.
	Shared []mycnf.Setting `json:"shared,omitempty"`
}

// ownFile reads --against; nil where it was not given. What the file sets of the durability lock has to be safe: a race is run at
// equal durability.
func (a *app) ownFile(ctx context.Context, b server.Binary, path string) (*ownFile, error) {
	if path == "" {
		return nil, nil
	}
	settings, err := a.userSettings(ctx, b, path, nil)
	if err != nil {
		return nil, err
	}
	own := &ownFile{File: path, Settings: append([]mycnf.Setting{}, settings...)}
	for i := range own.Settings {
		own.Settings[i].Source = own.name()
	}
	own.Shared = shared(b.Flavour, own.Settings)
	return own, own.safe(b.Flavour)
}

// safe refuses a file that is less durable than every baseline is made.
func (o ownFile) safe(f mycnf.Flavour) error {
	settings := rules.Merge(rules.Control(f).Settings, o.Settings)
	for _, s := range settings {
		name, value := mycnf.Canonical(s.Name, s.Value)
		if name == "skip_log_bin" || name == "log_bin" && slices.Contains([]string{"OFF", "0"}, strings.ToUpper(value)) {
			return usage("--against %s: the durability lock: it keeps no binary log, which point-in-time recovery and replicas are made of; take %s out", o.File, s.Name)
		}
	}
	for _, v := range mycnf.CheckLock(f, asked(settings)) {
		if v.Got != "" { // what the file does not set is the server's own
			return usage("--against %s: the durability lock: %s; the baselines are made safe, so make the file safe, too", o.File, v)
		}
	}
	return nil
}

// shared are the settings that are members of the lock without a safe value.
func shared(f mycnf.Flavour, settings []mycnf.Setting) (list []mycnf.Setting) {
	for _, s := range settings {
		name, _ := mycnf.Canonical(s.Name, s.Value)
		if slices.ContainsFunc(mycnf.Lock(f), func(l mycnf.LockVariable) bool { return l.Name == name && len(l.Safe) == 0 }) {
			list = append(list, s)
		}
	}
	return list
}

// on is a baseline's settings with what every arm has to have alike; o may be nil.
func (o *ownFile) on(settings []mycnf.Setting) []mycnf.Setting {
	if o == nil {
		return settings
	}
	return rules.Merge(settings, o.Shared)
}

// notes say what the baselines have of the file.
func (o *ownFile) notes() []string {
	if o == nil || len(o.Shared) == 0 {
		return nil
	}
	var list []string
	for _, s := range o.Shared {
		list = append(list, strings.TrimSuffix(s.Name+"="+s.Value, "="))
	}
	return []string{fmt.Sprintf("every baseline has these of %s, without which arms are not alike: %s", o.name(), strings.Join(list, ", "))}
}

// name is the file's, without its folder.
func (o ownFile) name() string { return filepath.Base(o.File) }

func (o ownFile) title() string { return "the server with " + o.name() }

// arm is the control. Its settings are there already, so that the file is read once.
func (o ownFile) arm() armSpec {
	return armSpec{name: stats.Control, title: o.title(), cnf: o.File, settings: o.Settings}
}
