"""Control environments: tasks for learners, thousands side by side."""
