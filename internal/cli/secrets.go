package cli

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/plain"
)

// leastHidden is how long a password is at least, in bytes, to be hidden wherever it stands in what is printed: a shorter
// one is part of other words.
const leastHidden = 8

// hideSecrets has what this command line knows of secrets hidden in what is printed.
func (a *app) hideSecrets() {
	for _, w := range a.printers() {
		for _, arg := range a.argv {
			for _, form := range []string{arg, filepath.Clean(arg)} { // as it may stand in a path
				if secret := passwordIn(form); secret != "" {
					w.Hide(":"+secret+"@", ":***@")
				}
			}
		}
	}
	a.hide(a.env("MYSQL_PWD"))
}

// hide hides a password from now on.
func (a *app) hide(password string) {
	if len(password) < leastHidden {
		return
	}
	for _, w := range a.printers() {
		w.Hide(password, "***")
	}
}

// printers are where is printed to.
func (a *app) printers() (list []*plain.Writer) {
	if out, ok := a.out.(*plain.Writer); ok {
		list = append(list, out)
	}
	if err, ok := a.err.(*plain.Writer); ok {
		list = append(list, err)
	}
	return list
}

// credentials matches what begins with a user and a password, as a DSN does: user:password@host.
var credentials = regexp.MustCompile(`(?s)^(?:--[a-z-]+=)?(?:mysql://)?[^\s:/=@]*:(.+)@(.*)$`)

// passwordIn finds the password of what looks like a DSN; "" where there is none. The digest of an image is no host.
func passwordIn(arg string) string {
	m := credentials.FindStringSubmatch(arg)
	if m == nil || strings.HasPrefix(m[2], "sha256:") {
		return ""
	}
	return m[1]
}

// dsnForm matches what cannot be meant to be anything else.
var dsnForm = regexp.MustCompile(`(?s)^(mysql://|.*@(tcp|unix)?\()`)

// noDSN refuses a DSN where a file or a folder is wanted: it would stand in the error, and on record.
func noDSN(cmd *cobra.Command, args []string) (err error) {
	const why = "takes no address of a server: give that to --dsn (it is not repeated here, as it may hold a password)"
	cmd.Flags().Visit(func(f *pflag.Flag) {
		path := f.Value.Type() == "string" && f.Name != "dsn"
		if path && dsnForm.MatchString(f.Value.String()) && err == nil {
			err = usage("--%s "+why, f.Name)
		}
	})
	for _, arg := range args {
		if dsnForm.MatchString(arg) && err == nil {
			err = usage("%s "+why, cmd.CommandPath())
		}
	}
	return err
}
