package lab

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

// OwnFile holds the user's own option file, the control of a race.
type OwnFile struct {
	File     string          `json:"file"`
	Settings []mycnf.Setting `json:"settings"`
	// Shared lists those of Settings that every arm has to have alike, or no verdict could be given: the
	// members of the durability lock that have no safe value of their own, as transaction_isolation.
	Shared []mycnf.Setting `json:"shared,omitempty"`
}

// ownFile reads one; nil where it was not given. What the file sets of the durability lock has to be
// safe: a race is run at equal durability.
func (l Lab) ownFile(ctx context.Context, b server.Binary, path string) (*OwnFile, error) {
	if path == "" {
		return nil, nil
	}
	settings, err := l.UserSettings(ctx, b, path, nil)
	if err != nil {
		return nil, err
	}
	c := &OwnFile{File: path, Settings: append([]mycnf.Setting{}, settings...)}
	for i := range c.Settings {
		c.Settings[i].Source = c.name()
	}
	c.Shared = shared(b.Flavour, c.Settings)
	return c, c.safe(b.Flavour)
}

// safe refuses a file that is less durable than every baseline is made.
func (c OwnFile) safe(f mycnf.Flavour) error {
	settings := rules.Merge(rules.Control(f).Settings, c.Settings)
	for _, s := range settings {
		name, value := mycnf.Canonical(s.Name, s.Value)
		if name == "skip_log_bin" || name == "disable_log_bin" || name == "log_bin" && slices.Contains([]string{"OFF", "0"}, strings.ToUpper(value)) {
			return refuse("--against %s: the durability lock: it keeps no binary log, which point-in-time recovery and replicas are made of; take %s out", c.File, s.Name)
		}
	}
	for _, v := range mycnf.CheckLock(f, mycnf.Asked(f, mycnf.Version{}, settings)) {
		if v.Got != "" { // what the file does not set is the server's own
			return refuse("--against %s: the durability lock: %s; the baselines are made safe, so make the file safe, too", c.File, v)
		}
	}
	return nil
}

// shared picks the settings that are members of the lock without a safe value.
func shared(f mycnf.Flavour, settings []mycnf.Setting) (list []mycnf.Setting) {
	for _, s := range settings {
		name, _ := mycnf.Canonical(s.Name, s.Value)
		if slices.ContainsFunc(mycnf.Lock(f), func(l mycnf.LockVariable) bool { return l.Name == name && len(l.Safe) == 0 }) {
			list = append(list, s)
		}
	}
	return list
}

// on adds to a baseline's settings what every arm has to have alike; c may be nil.
func (c *OwnFile) on(settings []mycnf.Setting) []mycnf.Setting {
	if c == nil {
		return settings
	}
	return rules.Merge(settings, c.Shared)
}

// notes say what the baselines have of the file.
func (c *OwnFile) notes() []string {
	if c == nil || len(c.Shared) == 0 {
		return nil
	}
	var list []string
	for _, s := range c.Shared {
		list = append(list, strings.TrimSuffix(s.Name+"="+s.Value, "="))
	}
	return []string{fmt.Sprintf("every baseline has these of %s, without which arms are not alike: %s", c.name(), strings.Join(list, ", "))}
}

// name leaves out the file's folder.
func (c OwnFile) name() string { return filepath.Base(c.File) }

// Title says what the control is.
func (c OwnFile) Title() string { return "the server with " + c.name() }

// arm describes the control. Its settings are there already, so that the file is read once.
func (c OwnFile) arm() Arm {
	return Arm{Name: stats.Control, Title: c.Title(), Cnf: c.File, Settings: c.Settings}
}
