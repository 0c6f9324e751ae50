/* SPDX-License-Identifier: MIT */
/*
 * Who left the table, for who waits for the record of their end.
 */
#include "proctab-internal.h"

static bool keep(struct proctab *t, const struct proc_entry *e)
{
	uint32_t number;

	if (array_reserve(&t->left_now, &t->left_now_cap, t->n_left_now + 1,
			  sizeof(*t->left_now)) < 0)
		return false;
	if (t->left_free) {
		number = t->left_free - 1;
		t->left_free = t->left[number].looked_s;
	} else if (array_reserve(&t->left, &t->left_cap, t->n_left + 1,
				 sizeof(*t->left)) == 0) {
		number = (uint32_t)t->n_left++;
	} else {
		return false;
	}
	t->left[number] = *e;
	t->left_now[t->n_left_now++] = number;
	return true;
}

void proctab_leave_table(struct proctab *t, const struct proc_entry *e)
{
	if (!t->keeps_left || !proc_is_counted(e->proc) || !keep(t, e))
		proc_free(t, e->proc);
	else
		procfs_pid_close(t->fs, &e->proc->at);
}

void proctab_let_go(struct proctab *t, uint32_t number)
{
	struct proc_entry *e = &t->left[number];

	proc_free(t, e->proc);
	*e = (struct proc_entry){.looked_s = t->left_free};
	t->left_free = number + 1;
}

void proctab_free_left(struct proctab *t)
{
	for (size_t i = 0; i < t->n_left; i++)
		proc_free(t, t->left[i].proc);
	free(t->left);
	free(t->left_now);
}
