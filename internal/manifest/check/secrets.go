package check

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"david/internal/manifest/stream"
	"david/internal/mycnf"
)

// clearSecrets finds passwords that stand in the open: in ConfigMaps, and in variables, commands and option
// files wherever they are in an object, an operator's too.
func (c *checker) clearSecrets(d stream.Document) {
	switch d.Kind() {
	case "Secret", "CustomResourceDefinition":
		return
	case "ConfigMap":
		for _, e := range entries(d) {
			if hasPassword(e.key, e.text) {
				c.report(SeverityError, "clear-secret", d, e.path, "a password stands in a ConfigMap, which everybody who may list objects reads", "move it to a Secret, and refer to that")
			}
		}
		return
	}
	c.clearIn(d, d.Value, "")
}

// clearIn walks through a part of an object.
func (c *checker) clearIn(d stream.Document, part any, path string) {
	switch t := part.(type) {
	case map[string]any:
		c.clearVariable(d, t, path)
		c.clearCommand(d, t, path)
		for _, key := range slices.Sorted(maps.Keys(t)) {
			c.clearIn(d, t[key], stream.Step(path, key))
		}
	case string:
		if optionGroup.MatchString(t) && hasPassword("", t) {
			c.report(SeverityError, "clear-secret", d, path, "a password stands in the option file: everybody who may read the object reads it", "move it to a Secret, and refer to that")
		}
	case []any:
		for i, one := range t {
			c.clearIn(d, one, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// clearVariable finds a variable with a password as its value: an element of a container's env, or of any
// list like it.
func (c *checker) clearVariable(d stream.Document, v map[string]any, path string) {
	name, value := stream.Text(v["name"]), stream.Text(v["value"])
	switch {
	case value != "" && strings.Contains(strings.ToUpper(name), "ALLOW_EMPTY") && strings.Contains(strings.ToUpper(name), "PASSWORD"):
		c.report(SeverityError, "clear-secret", d, path, name+": everybody who reaches the server is root", "give the password from a Secret")
	case value != "" && secretName.MatchString(name) && !notSecret.MatchString(name) && !strings.HasPrefix(value, "$("):
		c.report(SeverityError, "clear-secret", d, path, name+" has its value in the open: everybody who may read the object reads it", "give it from a Secret: valueFrom.secretKeyRef")
	}
}

// clearCommand finds a password in a command: of a container, a probe, a hook; a CronJob that dumps shows it
// as a server's probe does. A program may stand in command, and its options in args.
func (c *checker) clearCommand(d stream.Document, v map[string]any, path string) {
	command, args := texts(v["command"]), texts(v["args"])
	look := func(field string, words []string) bool {
		line := strings.Join(words, " ")
		found := argumentPassword.MatchString(line) || commandPassword.MatchString(line)
		if found {
			c.report(SeverityError, "clear-secret", d, stream.Step(path, field), "a password stands in the command's arguments: everybody who may read the object or a process list reads it",
				"give it in the environment, MYSQL_PWD, from a Secret")
		}
		return found
	}
	if !look("command", command) && !look("args", args) && len(args) > 0 {
		look("args", slices.Concat(command, args))
	}
}

// texts picks the elements of a list that are texts.
func texts(v any) (list []string) {
	for _, one := range asList(v) {
		if text, is := one.(string); is {
			list = append(list, text)
		}
	}
	return list
}

// argumentPassword matches a password in a client's arguments, which every process list and every reader of
// the object shows.
var argumentPassword = regexp.MustCompile(`(?:^|[\s/;|&("'` + "`" + `])` + programs + `\s(?:[^;|&]*\s)?(?:-p|--password=|--mysql-password=)["']?[^\s"'$-][^\s"']*`)

// commandPassword matches a password in a variable that a command sets for the clients that it calls.
var commandPassword = regexp.MustCompile(`(?:^|[\s;|&("'])MYSQL_PWD=["']?[^\s"'$` + "`" + `;]`)

// secretName matches names of variables whose values nobody else should read.
var secretName = regexp.MustCompile(`(?i)(password|passwd|_pwd|^pwd|secret|token|private_key)`)

// optionGroup matches the head of a group in an option file.
var optionGroup = regexp.MustCompile(`(?m)^\s*\[(?:mysql|mariadb|server|client|galera|sst|xtrabackup)[\w.-]*\]\s*$`)

// passwordLine matches a line of an option file or a script that sets a password.
var passwordLine = regexp.MustCompile(`(?im)^\s*(?:export\s+)?(?:[\w-]*password|[\w-]*passwd|\w*_pwd|wsrep_sst_auth|master_password|source_password)\s*[=:]\s*["']?[^\s"'$<{][^\s]*`)

// notSecret matches variables whose names hold the word and whose values are none.
var notSecret = regexp.MustCompile(`(?i)(validate_password|native_password|sha256_password|sha2_password|password_history|password_reuse|password_require|default_password_lifetime|disconnect_on_expired|log_raw|strict_password|random_password|random_root_password|onetime_password|retained_password|allow_empty|token_size|_file$|_path$|_name$|_hash)`)

func hasPassword(key, value string) bool {
	if secretName.MatchString(key) && !notSecret.MatchString(key) && value != "" {
		return true
	}
	for line := range strings.Lines(value) {
		if passwordLine.MatchString(line) && !notSecret.MatchString(line) {
			return true
		}
	}
	return false
}

// secretVariable matches the variables of servers whose values are secrets; settings such as
// innodb_ft_min_token_size are none.
var secretVariable = regexp.MustCompile(`^(?:(?:\w+_)?password|wsrep_sst_auth|\w+_(?:pwd|passphrase|secret|secret_id|token))$`)

// notVariable matches variables that are named like a password and are none.
var notVariable = regexp.MustCompile(`^(?:mysql_native_password|sha256_password|caching_sha2_password|validate_password|log_raw|simple_password_check|cracklib_password_check)$`)

// IsSecret tells whether a setting's value is one that nobody may read who reads the configuration.
func IsSecret(s mycnf.Setting) bool {
	name := mycnf.WithoutLoose(s.Name)
	if name == "wsrep_provider_options" {
		return strings.Contains(strings.ToLower(s.Value), "password=")
	}
	return s.Value != "" && secretVariable.MatchString(name) && !notVariable.MatchString(name)
}
