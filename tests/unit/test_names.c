/* SPDX-License-Identifier: Apache-2.0 */
/* What a process is called, and what it is not. */
#include "tree.h"
#include "core/command.h"
#include "core/match.h"

/* --- command lines ---------------------------------------------------------------------------- */

/* Blanks are where the kernel has NUL; '~' is a blank inside an argument. The names that come out,
 * with '|' between them. */
static const struct {
    const char *cmdline, *names;
} lines[] = {
    /* programs */
    {"sleep 77", "sleep"},
    {"/usr/bin/sort -n tool.py", "sort"},
    {"vi tool.py", "vi"},
    {"vi /home/me/tool.py", "vi"},
    {"timeout 10 tool.py", "timeout"},
    {"/usr/bin/env python3 tool.py", "env"},
    {"/bin/ls -l", "ls"}, /* a link to busybox: exe says so */
    {"./a/b/", "./a/b/"},
    {"pythonista tool.py", "pythonista"},
    {"python-config tool.py", "python-config"},
    {"shred tool.py", "shred"},
    /* python */
    {"python3 script.py", "python3|script.py"},
    {"/opt/venv/bin/python3.11 /srv/app/script.py tool.py", "python3.11|script.py"},
    {"pypy3 script.py", "pypy3|script.py"},
    {"python -m pkg.mod tool.py", "python|pkg.mod"},
    {"python -mpkg.mod", "python|pkg.mod"},
    {"python -um pkg.mod", "python|pkg.mod"},
    {"python -W ignore -u x.py", "python|x.py"},
    {"python -Wignore -uB x.py", "python|x.py"},
    {"python -X dev -X importtime x.py", "python|x.py"},
    {"python --check-hash-based-pycs always x.py", "python|x.py"},
    {"python -c import~tool tool.py", "python"},
    {"python -uc import~tool tool.py", "python"},
    {"python - tool.py", "python"}, /* standard input is the script */
    {"python -u - tool.py", "python"},
    {"python -- tool.py", "python|tool.py"},
    {"python -- -tool.py", "python|-tool.py"},
    {"python", "python"},
    {"python -i", "python"},
    {"python -m", "python"},
    {"python -W", "python"},
    {"python -V", "python"},
    /* shells */
    {"bash -lc tool.sh~--fast", "bash"},
    {"bash -c tool.sh", "bash"},
    {"sh -ec tool.sh tool.sh", "sh"},
    {"bash -x s.sh", "bash|s.sh"},
    {"bash +x s.sh", "bash|s.sh"},
    {"bash -eo pipefail s.sh", "bash|s.sh"},
    {"bash -o pipefail -c tool.sh", "bash"},
    {"bash --norc --rcfile tool.sh s.sh", "bash|s.sh"},
    {"bash -s tool.sh", "bash"}, /* standard input again */
    {"bash - s.sh", "bash|s.sh"},
    {"dash /tmp/s", "dash|s"},
    {"zsh -f s.zsh", "zsh|s.zsh"},
    {"-bash", "-bash"},
    {"-bash s.sh", "-bash|s.sh"},
    /* others */
    {"perl -Ilib p.pl", "perl|p.pl"},
    {"perl -I lib -w p.pl", "perl|p.pl"},
    {"perl -MFile::Temp p.pl", "perl|p.pl"},
    {"perl -mEncode -i.orig p.pl", "perl|p.pl"},
    {"perl -lne print tool.pl", "perl"},
    {"perl -MList::Util -E say tool.pl", "perl"},
    {"perl5.36.0 p.pl", "perl5.36.0|p.pl"},
    {"ruby -Ilib -rset r.rb", "ruby|r.rb"},
    {"ruby -W:no-deprecated r.rb", "ruby|r.rb"},
    {"ruby -e puts tool.rb", "ruby"},
    {"node --opt=1 app.js", "node|app.js"},
    {"node -r dotenv/config /srv/app.js tool.js", "node|app.js"},
    {"node --require dotenv/config app.js", "node|app.js"},
    {"node --env-file .env app.js", "node|app.js"},
    {"node -e code tool.js", "node"},
    {"node --eval code tool.js", "node"},
    {"node --eval=code tool.js", "node"},
    {"node --print code", "node"},
    {"nodejs app.js", "nodejs|app.js"},
    {"java -Xmx1g -cp a:b Main tool", "java|Main"},
    {"java -classpath a:b -Dx=tool com.acme.Main", "java|com.acme.Main"},
    {"java -jar /x/app.jar tool", "java|app.jar"},
    {"java -XX:+UseG1GC -jar app.jar", "java|app.jar"},
    {"java --add-opens java.base/java.lang=ALL-UNNAMED -jar app.jar", "java|app.jar"},
    {"java --module-path /m -m mod/com.acme.Main", "java|com.acme.Main"},
    {"php -d a=b -f s.php", "php|s.php"},
    {"php --run code", "php"},
    {"Rscript --vanilla /x/s.R tool.R", "Rscript|s.R"},
    {"Rscript -e code tool.R", "Rscript"},
    {"lua5.4 -l mod s.lua", "lua5.4|s.lua"},
    {"julia --project=. s.jl", "julia|s.jl"},
    {"julia --eval code tool.jl", "julia"},
    /* what a process calls itself: setproctitle writes one text over all arguments */
    {"nginx:~master~process~/usr/sbin/tool~-g", "nginx"},
    {"sshd:~root@pts/0", "sshd"},
    {"/usr/sbin/sshd:~tool~/tool", "sshd"},
    {"/opt/chrome/chrome~--type=renderer~--dir=/x/tool", "chrome"},
    {"python3~/x/tool.py~--fast", "python3"},
    {"/opt/my~app/bin/tool~set", "tool set"},
};

static size_t line_of(const char *text, char *line)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        line[i] = text[i] == ' ' ? '\0' : text[i] == '~' ? ' ' : text[i];
    line[n] = '\0';
    return n + 1;
}

static const char *joined(const struct pr_names *names, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < names->count; i++) {
        size_t n = strlen(text);
        snprintf(text + n, size - n, "%s%s", i ? "|" : "", names->text[i]);
    }
    return text;
}

static void test_command_lines(void **state)
{
    (void)state;
    char line[256], text[1100];
    int wrong = 0;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct pr_names names = {.count = 0};
        size_t n = line_of(lines[i].cmdline, line);
        pr_names_of(line, n, &names);
        if (strcmp(joined(&names, text, sizeof text), lines[i].names) != 0) {
            print_error("'%s' is called %s, not %s\n", lines[i].cmdline, text, lines[i].names);
            wrong++;
        }
        /* The kernel's last NUL may be missing: somebody wrote over it. */
        struct pr_names again = {.count = 0};
        pr_names_of(line, n - 1, &again);
        assert_int_equal(again.count, names.count);
    }
    assert_int_equal(wrong, 0);
}

static void test_nothing_to_be_called_by(void **state)
{
    (void)state;
    struct pr_names names = {.count = 0};
    pr_names_of("", 0, &names);
    assert_int_equal(names.count, 0);
    pr_names_of("", 1, &names); /* argv[0] is "" */
    assert_int_equal(names.count, 0);
    pr_names_of("\0\0\0", 3, &names);
    assert_int_equal(names.count, 0);
    pr_names_of("python\0\0x.py", 12, &names); /* an empty argument is no script */
    assert_int_equal(names.count, 1);
}

static void test_a_name_is_there_once(void **state)
{
    (void)state;
    struct pr_names names = {.count = 0};
    pr_names_of("sh\0sh", 6, &names);
    assert_int_equal(names.count, 1);
    pr_names_of("sh", 3, &names);
    assert_int_equal(names.count, 1);
}

static void test_very_long_names_are_cut(void **state)
{
    (void)state;
    char line[3000];
    struct pr_names names = {.count = 0};
    memset(line, 'x', sizeof line);
    memcpy(line, "python3\0/", 9);
    line[sizeof line - 1] = '\0';
    pr_names_of(line, sizeof line, &names);
    assert_int_equal(names.count, 2);
    assert_int_equal(strlen(names.text[1]), NAME_SIZE - 1);
}

/* --- a tree ----------------------------------------------------------------------------------- */

static char dir[TREE_PATH];
static struct pr_host host;

static int setup(void **state)
{
    struct proctor_error err;
    (void)state;
    tree_new(dir);
    return pr_host_open(&host, dir, &err);
}

static int teardown(void **state)
{
    (void)state;
    pr_host_close(&host);
    tree_done(dir);
    return 0;
}

static void write_cmdline(const char *text)
{
    static char line[65536];
    tree_write_bytes(dir, "proc/50/cmdline", line, line_of(text, line));
}

static void link_exe(const char *to)
{
    char path[TREE_PATH + 16];
    snprintf(path, sizeof path, "%s/proc/50/exe", dir);
    unlink(path);
    assert_int_equal(symlink(to, path), 0);
}

static const char *names_of(const char *comm)
{
    static char text[1100];
    struct pr_names names;
    pr_names_read(&host, 50, comm, &names);
    return joined(&names, text, sizeof text);
}

static void test_all_that_it_is_called(void **state)
{
    (void)state;
    assert_string_equal(names_of("kworker/0:1"), "kworker/0:1"); /* neither of the two files */
    write_cmdline("/usr/bin/python3 ./long-name-of-a-script.py tool.py");
    assert_string_equal(names_of("long-name-of-a-"),
                        "long-name-of-a-|python3|long-name-of-a-script.py");
    link_exe("/usr/bin/python3.11");
    assert_string_equal(names_of("long-name-of-a-"),
                        "long-name-of-a-|python3|long-name-of-a-script.py|python3.11");
    write_cmdline("/bin/ls tool");
    link_exe("/bin/busybox");
    assert_string_equal(names_of("ls"), "ls|busybox");
    link_exe("/opt/app (deleted)"); /* it was installed anew */
    assert_string_equal(names_of("ls"), "ls|app");
    write_cmdline("");
    assert_string_equal(names_of("ls"), "ls|app");
    link_exe("/ (deleted)");
    assert_string_equal(names_of("x"), "x|/");
}

/* A class path easily has some thousand bytes, and the class stands behind it. */
static void test_what_stands_behind_a_long_argument(void **state)
{
    (void)state;
    static char text[20000];
    size_t n = (size_t)snprintf(text, sizeof text, "java -cp ");
    memset(text + n, 'a', 16000);
    snprintf(text + n + 16000, sizeof text - n - 16000, " com.acme.Main");
    write_cmdline(text);
    assert_string_equal(names_of("java"), "java|com.acme.Main");
}

/* However long: nothing is read behind the end. */
static void test_a_command_line_without_end(void **state)
{
    (void)state;
    static char text[65000];
    memset(text, 'a', sizeof text - 1);
    memcpy(text, "python3 -W ", 11);
    write_cmdline(text);
    assert_string_equal(names_of("p"), "p|python3");
}

/* --- with what it was called --------------------------------------------------------------------
 */

static const char *command_of(const char *cmdline, size_t len)
{
    static char text[COMMAND_MOST + 1];
    memset(text, 'x', sizeof text);
    pr_command_of(cmdline, len, text);
    return text;
}

static void test_the_arguments_on_one_line(void **state)
{
    (void)state;
    assert_string_equal(command_of("sh\0-c\0echo  a\nb\033[1m\0", 19), "sh -c echo  a b [1m");
    assert_string_equal(command_of("tool\0\0last", 10), "tool  last"); /* an empty one */
    assert_string_equal(command_of("renamed by itself\0\0\0", 20), "renamed by itself");
    assert_string_equal(command_of("", 0), "");
    assert_string_equal(command_of("\0", 1), "");
    assert_string_equal(command_of("a\xff\0b", 4), "a? b");
}

/* Behind whole characters; what just fits is whole. */
static void test_long_arguments_are_cut(void **state)
{
    char line[3 * COMMAND_MOST];
    (void)state;
    memset(line, 'a', sizeof line);
    assert_int_equal(strlen(command_of(line, COMMAND_MOST)), COMMAND_MOST);
    assert_null(strstr(command_of(line, COMMAND_MOST), "..."));
    for (size_t at = COMMAND_MOST - 8; at < COMMAND_MOST; at++) {
        memset(line, 'a', sizeof line);
        memcpy(line + at, "\xe2\x82\xac", 3);
        const char *text = command_of(line, sizeof line);
        size_t n = strlen(text);
        assert_true(n <= COMMAND_MOST && n > COMMAND_MOST - 3);
        assert_string_equal(text + n - 3, "...");
        assert_true(text[n - 4] == 'a' || memcmp(text + n - 6, "\xe2\x82\xac", 3) == 0);
    }
}

static void test_command_and_directory_are_read(void **state)
{
    char text[COMMAND_MOST + 1], path[TREE_PATH], from[2 * TREE_PATH];
    (void)state;
    write_cmdline("/bin/ls tool");
    pr_command_read(&host, 50, text);
    assert_string_equal(text, "/bin/ls tool");
    pr_command_read(&host, 51, text);
    assert_string_equal(text, "");
    pr_directory_read(&host, 50, path, sizeof path);
    assert_string_equal(path, "");
    snprintf(from, sizeof from, "%s/proc/50/cwd", dir);
    assert_int_equal(symlink("/some/where", from), 0);
    pr_directory_read(&host, 50, path, sizeof path);
    assert_string_equal(path, "/some/where");
    pr_directory_read(&host, 50, path, 8); /* a part of it would be another one */
    assert_string_equal(path, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_lines),
        cmocka_unit_test(test_nothing_to_be_called_by),
        cmocka_unit_test(test_a_name_is_there_once),
        cmocka_unit_test(test_very_long_names_are_cut),
        TEST(test_all_that_it_is_called),
        TEST(test_what_stands_behind_a_long_argument),
        TEST(test_a_command_line_without_end),
        cmocka_unit_test(test_the_arguments_on_one_line),
        cmocka_unit_test(test_long_arguments_are_cut),
        TEST(test_command_and_directory_are_read),
    };
    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
